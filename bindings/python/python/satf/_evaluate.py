"""Evaluations: models learn from the past of a log and are judged on its future."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from satf import _satf
from satf._data import Columns, LogLike, log_kind, memory_bytes, reading, to_log
from satf._errors import ConfigError
from satf._frames import Output
from satf._model import Model, load
from satf._progress import Progress
from satf._results import Results
from satf._run import Run
from satf._split import Split, TrainingSet, protocol_of, tell

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@runtime_checkable
class OwnModel(Protocol):
    """A model of one's own, evaluated like all others.

    ``score(history)`` gives one score per item of the training set, higher is better. A history is an array of places in
    :attr:`TrainingSet.items`, oldest first. A model may have ``fit(train)``, called with a :class:`TrainingSet`, and
    ``score_batch(histories)``, which gives one row of scores per history and is then called instead of ``score``.
    """

    def score(self, history: npt.NDArray[np.int64]) -> npt.ArrayLike:
        """Scores of all items."""
        ...


def evaluate(
    log: LogLike | Split,
    models: Any = ("d-satf",),
    *,
    test: str | None = None,
    valid: str | None = None,
    split: str = "calendar",
    on: str = "test",
    ties: str = "shuffle",
    seed: int = 0,
    at: int | Sequence[int] = 10,
    unit: str = "user",
    early_stopping: str | None = None,
    patience: int = 2,
    max_len: int | None = None,
    memory: int | str | None = None,
    columns: Columns | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Results:
    """Fits models to the past of a log and scores them on its future, all under one protocol.

    ``models`` is one or a list of: a name (``"d-satf"``), a name with keys (``("ease", {"regularization": 100})``), a preset
    (``"la-satf/amz-b"``), a fitted :class:`Model` or the path of one, an object of your own (:class:`OwnModel`); or a dict of them by label.

    ``log`` is a log, or a :class:`Split` of one. ``at`` are the lengths of lists. ``unit`` is what standard errors take for one observation:
    ``user`` or ``event``. ``early_stopping`` is a metric (``"NDCG@10"``): iterative models learn on the validation set how long to train.

    The scores are those of ``satf evaluate`` with the same options, to the bit.
    """
    memory_limit = memory_bytes(memory)
    options: dict[str, Any] = {"cutoffs": [at] if isinstance(at, int) else list(at), "unit": unit}
    if early_stopping is not None:
        options["early_stopping"] = {"metric": early_stopping, "patience": patience}
    with Progress(progress) as shown:
        work = _satf.Work(threads, shown.callback)
        if isinstance(log, Split):
            cut, kind = log._core, log._kind
        else:
            part = {"test": "test", "validation": "validation"}.get(on)
            if part is None:
                raise ConfigError(f"on={on!r}: expected 'test' or 'validation'")
            protocol = protocol_of(test=test, valid=valid, split=split, part=part, ties=ties, seed=seed, max_len=max_len)
            cut = _satf.cut(to_log(log, reading(columns), work), protocol, True, work)
            kind = log_kind(log)
            tell(cut.warnings)
        runs = [_run(cut, label, model, options, memory_limit, work, kind) for label, model in _labelled(models)]
    for run in runs:
        tell(run._core.warnings)
    return Results(runs, cut.description(), cut.counts(), kind)


def _labelled(models: Any) -> list[tuple[str | None, Any]]:
    if isinstance(models, Mapping):
        return [(str(label), model) for label, model in models.items()]
    if isinstance(models, (str, Model, os.PathLike)) or hasattr(models, "score"):
        models = [models]
    elif isinstance(models, tuple) and len(models) == 2 and isinstance(models[0], str) and isinstance(models[1], Mapping):
        models = [models]
    labelled: list[tuple[str | None, Any]] = []
    taken: dict[str, int] = {}
    for model in models:
        label = _label(model)
        taken[label] = taken.get(label, 0) + 1
        labelled.append((f"{label} #{taken[label]}" if taken[label] > 1 else label, model))
    if not labelled:
        raise ConfigError("models: expected at least one")
    return labelled


def _label(model: Any) -> str:
    if isinstance(model, str):
        return model
    if isinstance(model, os.PathLike):
        return Path(model).stem
    if isinstance(model, Model):
        return model.name
    if isinstance(model, tuple) and len(model) == 2 and isinstance(model[0], str):
        return model[0]
    name = getattr(model, "name", None)
    return name if isinstance(name, str) else type(model).__name__


def _run(cut: _satf.Cut, label: str | None, model: Any, options: dict[str, Any], memory: int | None, work: _satf.Work, kind: Output) -> Run:
    keys: Mapping[str, Any] = {}
    if isinstance(model, tuple) and len(model) == 2 and isinstance(model[1], Mapping):
        keys = model[1]
        model = model[0]
    if isinstance(model, str) and model.endswith(".satf"):
        model = Path(model)
    if isinstance(model, str):
        return Run(cut.run_named(model, dict(keys), label, options, memory, work), kind)
    if isinstance(model, os.PathLike):
        model = load(model)
    if isinstance(model, Model):
        return Run(cut.run_fitted(model._core, label or model.name, options, work), kind)
    if not (hasattr(model, "score") or hasattr(model, "score_batch")):
        raise ConfigError(
            f"{model!r} is not a model: expected a name, a name with keys, a satf.Model, the path of one, or an object with score(history)"
        )
    if isinstance(model, type):
        raise ConfigError(f"{model.__name__} is a class: expected an object of it, {model.__name__}()")
    seconds = None
    own: Any = model
    if hasattr(own, "fit"):
        began = time.perf_counter()
        own.fit(TrainingSet(cut.training_set(), kind))
        seconds = time.perf_counter() - began
    return Run(cut.run_own(model, label or _label(model), seconds, options, work), kind)
