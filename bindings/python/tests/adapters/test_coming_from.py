"""The code of docs/guide/coming-from.md runs, section by section, where the package of a section is installed."""

from __future__ import annotations

import importlib.util
import os
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

import satf

PAGE = Path(__file__).parents[4] / "docs" / "guide" / "coming-from.md"
PACKAGES = {"RecTools": "rectools", "implicit": "implicit", "LensKit": "lenskit", "RecBole": "pandas", "scikit-learn": "sklearn"}

pytest.importorskip("pandas")


def sections() -> dict[str, list[str]]:
    """Blocks of Python by the heading they stand under."""
    found = {}
    for part in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE):
        heading = part.splitlines()[0].removeprefix("From ")
        found[heading] = re.findall(r"^```python\n(.*?)^```", part, flags=re.MULTILINE | re.DOTALL)
    return found


def test_every_section_is_run() -> None:
    first, *others = sections()
    assert others == list(PACKAGES)
    assert all(sections().values())


@pytest.mark.parametrize("section", PACKAGES)
def test_the_code_of_a_section_runs(section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec(PACKAGES[section]) is None:
        pytest.skip(f"{PACKAGES[section]} is not installed")
    monkeypatch.chdir(tmp_path)
    blocks = sections()
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", satf.SatfWarning)
        for block in [*next(iter(blocks.values())), *blocks[section]]:
            exec(compile(block, f"{PAGE.name}, {section}", "exec"), names)
    if section == "RecTools":
        assert os.path.getsize("model.satf") > 0
        assert len(names["lists"]) == 50
    elif section == "implicit":
        assert names["names"].shape == (3, 10)
    elif section == "LensKit":
        assert len(names["items"]) == 10
    elif section == "RecBole":
        assert set(names["scores"]) == {"d-satf", "sasrec"}
    else:
        assert len(names["best"]) == 50
