"""What tests share: a log of the made-up shop, as a frame and as a file, and the program itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import satf

#: Every model, with keys that keep it small.
MODELS: dict[str, dict[str, Any]] = {
    "d-satf": {},
    "mp": {},
    "random": {},
    "pure-svd": {"rank": 8},
    "ga-satf": {"item_rank": 8, "num_iters": 2},
    "la-satf": {"item_rank": 8, "num_iters": 2},
    "ease": {"regularization": 50.0},
    "vmis-knn": {},
    "transitions": {"window": 3},
    "sasrec": {"epochs": 1, "hidden": 8},
}


def satf_program(*words: object, code: int = 0) -> str:
    """Runs the console script, and gives what it prints."""
    program = Path(sys.executable).with_name("satf")
    done = subprocess.run([str(program), *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    return done.stdout


def satf_json(*words: object) -> Any:
    """Runs the console script, and reads the JSON that it prints."""
    return json.loads(satf_program(*words, "--json"))


@pytest.fixture(scope="session")
def shop() -> Any:
    """Events of the shop, in the first kind of frame that is there."""
    return satf.generate(users=400)


@pytest.fixture(scope="session")
def shop_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same events in a file, written by the program."""
    path = tmp_path_factory.mktemp("shop") / "shop.csv"
    satf_program("generate", "--users", 400, "-o", path)
    return path


@pytest.fixture(scope="session")
def model(shop: Any) -> satf.Model:
    """The default model of the shop."""
    return satf.fit(shop)
