"""The program `satf` comes along."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from conftest import satf_program

import satf


def test_the_console_script_is_the_program(tmp_path: Path) -> None:
    assert satf_program("--version") == f"satf {satf.__version__}\n"
    assert "Usage" in satf_program("--help")
    path = tmp_path / "shop.csv"
    assert f"written to {path}" in satf_program("generate", "--users", 50, "-o", path)
    done = subprocess.run([sys.executable, "-m", "satf", "stats", str(path)], capture_output=True, text=True)
    assert done.returncode == 0 and "users" in done.stdout


def test_exit_codes_are_those_of_the_program(tmp_path: Path) -> None:
    satf_program("stats", tmp_path / "none.csv", code=1)
    satf_program("stat", code=2)


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, satf; print(sorted({'numpy', 'pandas', 'polars', 'pyarrow', 'matplotlib'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
