"""An adapter without its package says which one it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

PACKAGES = {"rectools": "rectools", "implicit": "implicit", "lenskit": "lenskit", "sklearn": "scikit-learn"}


@pytest.mark.parametrize("module", PACKAGES)
def test_the_package_is_named_as_pip_knows_it(module: str) -> None:
    # None in sys.modules is how Python says that a module cannot be imported, whether or not it is installed.
    code = f"import sys; sys.modules[{module!r}] = None\nimport satf.adapters.{module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert f"ImportError: satf.adapters.{module} needs the package {PACKAGES[module]}" in done.stderr
    assert f"hint: pip install {PACKAGES[module]}" in done.stderr


def test_satf_itself_imports_none_of_them() -> None:
    code = f"import sys, satf; print([name for name in {list(PACKAGES)!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"
