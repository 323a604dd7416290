"""What the guide shows is what happens, and so is what docstrings show."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import satf_program

import satf
from satf import _data, _model

PAGES = Path(__file__).resolve().parents[3] / "docs" / "guide"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page: str) -> list[tuple[str, str]]:
    return re.findall(r"^```(console|python)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


@pytest.mark.filterwarnings("ignore::satf.SatfWarning")
@pytest.mark.parametrize("page", ["python.md"])
def test_the_guide_runs_as_printed(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("pandas", "polars", "pyarrow", "matplotlib"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names: dict[str, Any] = {}
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    parts = blocks((PAGES / page).read_text())
    assert sum(kind == "python" for kind, _ in parts) > 5
    failed = attempted = 0
    for number, (kind, text) in enumerate(parts, 1):
        if kind == "console":
            for line in text.splitlines():
                if line.startswith("$ "):
                    subprocess.run(line[2:], shell=True, check=True, stdout=subprocess.DEVNULL)
        else:
            test = doctest.DocTestParser().get_doctest(text, names, f"{page}, block {number}", page, 0)
            outcome = runner.run(test, clear_globs=False)
            failed, attempted = failed + outcome.failed, attempted + outcome.attempted
            names.update(test.globs)
    assert attempted > 40 and failed == 0


@pytest.mark.filterwarnings("ignore::satf.SatfWarning")
@pytest.mark.parametrize("page", ["README.md", "bindings/python/README.md"])
def test_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    satf_program("generate", "--users", 300, "-o", "shop.csv")
    examples = [text for kind, text in blocks((PAGES.parents[1] / page).read_text()) if kind == "python"]
    assert len(examples) == 1
    exec(compile(examples[0], page, "exec"), {})
    assert "item_id  score  rank" in re.sub(" +", "  ", capsys.readouterr().out)


@pytest.mark.parametrize("module", [satf, _data, _model])
def test_docstrings_run_as_printed(module: Any) -> None:
    outcome = doctest.testmod(module, extraglobs={"satf": satf}, optionflags=FLAGS)
    assert outcome.attempted > 0 and outcome.failed == 0


def test_everything_public_is_documented() -> None:
    for name in satf.__all__:
        thing = getattr(satf, name)
        if name == "__version__":
            continue
        assert thing.__doc__, name
        if isinstance(thing, type) and not issubclass(thing, (Exception, Warning)) and thing is not satf.Table:
            for method, value in vars(thing).items():
                if not method.startswith("_") and (callable(value) or isinstance(value, property)):
                    assert value.__doc__, f"{name}.{method}"
