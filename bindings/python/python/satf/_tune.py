"""The search for a model's best configuration."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from satf import _satf
from satf._data import Columns, LogLike, PathLike, memory_bytes, reading, to_log
from satf._frames import Output, check_output, frame_of, usual
from satf._model import Model, fit
from satf._progress import Progress
from satf._split import protocol_of, tell


class Study:
    """What a search found. :func:`tune` makes it."""

    def __init__(self, found: dict[str, Any], model: str, settings: dict[str, Any]) -> None:
        self._found = found
        #: The name of the model.
        self.model = model
        self._settings = settings

    @property
    def best_keys(self) -> dict[str, Any]:
        """The best configuration: keys for :func:`fit`."""
        return {**self._settings, **self._found["result"]["best"]["keys"]}

    @property
    def best_value(self) -> float:
        """The metric of the best configuration on the validation set."""
        return float(self._found["result"]["best"]["value"])

    @property
    def test(self) -> dict[str, float]:
        """The scores of the best configuration on the test set, fitted to all before it."""
        return {name: estimate["value"] for name, estimate in self._found["result"]["test"].items()}

    @property
    def result(self) -> dict[str, Any]:
        """Everything, as ``satf tune --json`` has it."""
        return dict(self._found)

    def trials(self, output: Output | None = None) -> Any:
        """One row per trial: its keys, its best score on the validation set, seconds."""
        check_output(output)
        rows = []
        for trial in self._found["trials"]:
            best = max(trial["scores"], key=lambda score: score["value"], default=None)
            keys = {**trial["keys"], **(best["keys"] if best else {})}
            rows.append({"trial": trial["trial"], **keys, "value": best["value"] if best else None, "seconds": trial["seconds"]})
        names = list(dict.fromkeys(name for row in rows for name in row))
        return frame_of({name: [row.get(name) for row in rows] for name in names}, output or usual())

    def fit(self, log: LogLike, **options: Any) -> Model:
        """Fits the best configuration to a log."""
        return fit(log, self.model, **{**self.best_keys, **options})

    def __repr__(self) -> str:
        keys = ", ".join(f"{name} {value}" for name, value in self.best_keys.items())
        metric = self._found["result"]["metric"]
        return f"<satf.Study of {self.model}, {len(self._found['trials'])} trials: {metric} {self.best_value:.4f} on validation with {keys}>"


def tune(
    log: LogLike,
    model: str = "d-satf",
    *,
    space: str | Mapping[str, Any] | PathLike | None = None,
    constraints: Sequence[str] = (),
    sampler: str = "random",
    trials: int | None = None,
    time_budget: float | None = None,
    metric: str = "NDCG@10",
    patience: int = 2,
    jobs: int = 1,
    study: PathLike | None = None,
    test: str | None = None,
    valid: str | None = None,
    split: str = "calendar",
    ties: str = "shuffle",
    seed: int = 0,
    max_len: int | None = None,
    memory: int | str | None = None,
    columns: Columns | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    **keys: Any,
) -> Study:
    """Searches for a model's best configuration on the validation set, then scores it once on the test set.

    ``space`` is the name of one of the model's spaces, a TOML file, or a dict of values by key: lists, or ranges
    (``{"from": 0.0, "to": 1.0, "step": 0.2}``). ``sampler`` is ``random``, ``tpe`` or ``exhaustive``. ``keys`` are held fixed. ``study`` is a folder
    that survives whatever ends the search: the same call goes on where it stopped.
    """
    asked: dict[str, Any] = {
        "model": model,
        "space": None,
        "sampler": sampler,
        "metric": metric,
        "patience": patience,
        "trials": trials,
        "time_budget": time_budget,
        "jobs": jobs,
        "memory": memory_bytes(memory),
    }
    if isinstance(space, Mapping):
        asked["space"] = {"keys": dict(space), "constraints": list(constraints)}
    elif space is not None:
        asked["space"] = os.fspath(space)
    protocol = protocol_of(test=test, valid=valid, split=split, ties=ties, seed=seed, max_len=max_len)
    with Progress(progress) as shown, tempfile.TemporaryDirectory() as temporary:
        work = _satf.Work(threads, shown.callback)
        core = to_log(log, reading(columns), work)
        folder = os.fspath(study) if study is not None else os.path.join(temporary, "study")
        found = _satf.tune(core, protocol, asked, keys, folder, work)
    tell(found.pop("warnings"))
    return Study(found, model, keys)
