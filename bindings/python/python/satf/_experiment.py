"""Experiments: a log is cut, models learn from its past and are judged on its future."""

from __future__ import annotations

import html
import os
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from satf import _satf
from satf._data import Columns, Id, Log, LogLike, PathLike, ids_of, log_kind, memory_bytes, reading, to_log
from satf._errors import ConfigError, SatfWarning
from satf._frames import Output, check_output, to_frame
from satf._model import Model, fit, load
from satf._progress import Progress

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from matplotlib.axes import Axes


@runtime_checkable
class OwnModel(Protocol):
    """A model of one's own, evaluated like all others.

    ``score(history)`` gives one score per item of the training set, higher is better. A history is an array of places in
    :attr:`TrainingSet.items`, oldest first. A model may have ``fit(train)``, called with a :class:`TrainingSet`, and
    ``score_batch(histories)``, which gives one row of scores per history and is then called instead of ``score``.
    """

    def score(self, history: npt.NDArray[np.int64]) -> npt.ArrayLike:
        """Scores of all items."""


class TrainingSet:
    """What a model of one's own learns from: histories of all users, items as places in :attr:`items`."""

    def __init__(self, core: _satf.TrainingSet, kind: Output) -> None:
        self._core = core
        self._kind: Output = kind

    @property
    def num_users(self) -> int:
        """How many users there are."""
        return self._core.num_users

    @property
    def num_items(self) -> int:
        """How many items there are: as many scores a model gives."""
        return self._core.num_items

    @property
    def users(self) -> list[Id]:
        """Ids of the users, in the order of their histories."""
        return ids_of(self._core.users().column("user_id"))

    @property
    def items(self) -> list[Id]:
        """Ids of the items, in the order of scores."""
        return ids_of(self._core.items().column("item_id"))

    @property
    def indptr(self) -> npt.NDArray[np.int64]:
        """Where each user's items begin in :attr:`indices`, and where the last one's end."""
        return self._core.indptr()

    @property
    def indices(self) -> npt.NDArray[np.int64]:
        """The items of all users, oldest first, user after user."""
        return self._core.indices()

    @property
    def times(self) -> npt.NDArray[np.int64]:
        """When each event happened: microseconds since 1970, or numbers of rows in a log without times."""
        return self._core.times()

    def histories(self) -> Iterator[npt.NDArray[np.int64]]:
        """Every user's items, oldest first."""
        indices, indptr = self.indices, self.indptr
        for start, end in zip(indptr[:-1], indptr[1:]):
            yield indices[start:end]

    def to_frame(self, output: Output | None = None) -> Any:
        """Its events as a frame with the columns ``user_id``, ``item_id`` and ``timestamp``."""
        check_output(output)
        return to_frame(self._core.table(), output or self._kind)

    def __len__(self) -> int:
        return self._core.num_events

    def __repr__(self) -> str:
        return f"<satf.TrainingSet of {len(self):,} events: {self.num_users:,} users, {self.num_items:,} items>"


class Split:
    """A log cut by time: what is learned from, and the events to predict. :func:`split` makes one."""

    def __init__(self, core: _satf.Cut, kind: Output) -> None:
        self._core = core
        self._kind: Output = kind
        self._logs: tuple[_satf.Log | None, ...] | None = None

    def _log(self, part: int) -> Log | None:
        if self._logs is None:
            self._logs = self._core.logs()
        core = self._logs[part]
        return None if core is None else Log(core, self._kind)

    def _frame(self, part: int) -> Any:
        log = self._log(part)
        return None if log is None else log.to_frame()

    @property
    def train(self) -> Any:
        """The events before the validation set (before the test set if there is none), as a frame."""
        return self._frame(0)

    @property
    def valid(self) -> Any:
        """The validation set as a frame; None if there is none."""
        return self._frame(1)

    @property
    def test(self) -> Any:
        """The test set as a frame."""
        return self._frame(2)

    @property
    def training_set(self) -> TrainingSet:
        """All before the test set, as models learn from it."""
        return TrainingSet(self._core.training_set(), self._kind)

    @property
    def events(self) -> Any:
        """The events to predict: a frame of ``event`` (their number), ``user_id``, ``item_id``, ``timestamp``, ``history_length``.

        Rows of the test set whose items the training set does not know, and the first events of new users, are not among them.
        """
        return to_frame(self._core.events(), self._kind)

    @property
    def histories(self) -> list[list[Id]]:
        """What each of :attr:`events` is predicted from: training items of its user, then earlier ones of the test set."""
        table = self._core.histories()
        lists: list[list[Id]] = [[] for _ in range(len(self._core.events()))]
        for event, item in zip(table.column("event").tolist(), ids_of(table.column("item_id"))):
            lists[event].append(item)
        return lists

    @property
    def counts(self) -> dict[str, int]:
        """How many rows the test set has, and what became of them."""
        counts: dict[str, int] = self._core.counts()
        return counts

    @property
    def protocol(self) -> dict[str, Any]:
        """How the log was cut."""
        description: dict[str, Any] = self._core.description()
        return description

    def __repr__(self) -> str:
        protocol = self.protocol
        rows = protocol["rows"]
        by = protocol["split"] if protocol["test"] is None else f"the newest {protocol['test']}"
        valid = f", {rows['valid']:,} to validate" if rows["valid"] else ""
        return f"<satf.Split by {by}: {rows['train']:,} events to train{valid}, {rows['test']:,} to test, {self.counts['scored']:,} to predict>"


def split(
    log: LogLike,
    test: str | None = None,
    valid: str | None = None,
    *,
    split: str = "calendar",
    ties: str = "shuffle",
    seed: int = 0,
    columns: Columns | None = None,
) -> Split:
    """Cuts a log by time: the newest ``test`` (such as ``"3weeks"``) is predicted, what comes before it is learned from.

    Without ``test`` an offset that suits the log is chosen, and a warning names it. ``valid`` holds back as much before the test set.
    ``split="leave-one-out"`` predicts each user's newest event instead, which leaks the future. ``ties`` is the order of a user's events with equal
    times: ``shuffle``, ``file``, or ``basket``.
    """
    protocol = _protocol(test=test, valid=valid, split=split, ties=ties, seed=seed)
    core = _satf.cut(to_log(log, reading(columns), _satf.Work(None, None)), protocol, valid is not None, None)
    _tell(core.warnings)
    return Split(core, log_kind(log))


def _protocol(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _tell(messages: Sequence[str], stacklevel: int = 3) -> None:
    for message in messages:
        warnings.warn(message, SatfWarning, stacklevel=stacklevel)


class Run:
    """The scores of one model."""

    def __init__(self, core: _satf.Run, kind: Output) -> None:
        self._core = core
        self._kind: Output = kind

    @property
    def label(self) -> str:
        """What the model is called."""
        return self._core.label

    @property
    def report(self) -> dict[str, Any]:
        """Everything but the single events, as ``satf evaluate --json`` has it."""
        report: dict[str, Any] = self._core.report()
        return report

    @property
    def metrics(self) -> dict[str, float]:
        """Every metric by name."""
        return {name: estimate["value"] for name, estimate in self.report["metrics"].items()}

    @property
    def errors(self) -> dict[str, float | None]:
        """Standard errors of the metrics."""
        return {name: estimate["stderr"] for name, estimate in self.report["metrics"].items()}

    def per_event(self, output: Output | None = None) -> Any:
        """Results event by event: ``user_id``, ``item_id`` (the target), ``timestamp``, ``history_length``, ``rank``, and every metric."""
        check_output(output)
        return to_frame(self._core.per_event(), output or self._kind)

    def save_per_event(self, path: PathLike) -> None:
        """Writes them to a file (CSV or Parquet by its name) that ``satf compare`` and :func:`compare` read."""
        self._core.write_per_event(os.fspath(path))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {value:.4f}" for name, value in self.metrics.items())
        return f"<satf.Run {self.label}: {shown}>"


class Results(Mapping[str, Run]):
    """Models side by side: :func:`evaluate` makes it. A mapping of :class:`Run` by label."""

    def __init__(self, runs: Sequence[Run], protocol: dict[str, Any], counts: dict[str, int], kind: Output) -> None:
        self._runs = {run.label: run for run in runs}
        self.protocol = protocol
        self.counts = counts
        self._kind: Output = kind

    def __getitem__(self, label: str) -> Run:
        return self._runs[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def rows(self) -> list[dict[str, Any]]:
        """One dict per model: label, metrics with their standard errors, seconds."""
        rows = []
        for run in self._runs.values():
            report = run.report
            row: dict[str, Any] = {"model": run.label}
            for name, estimate in report["metrics"].items():
                row[name] = estimate["value"]
                if estimate["stderr"] is not None:
                    row[f"{name} stderr"] = estimate["stderr"]
            row["train_seconds"] = report["train_seconds"]
            row["evaluate_seconds"] = report["evaluate_seconds"]
            rows.append(row)
        return rows

    def to_frame(self, output: Output | None = None) -> Any:
        """One row per model: every metric with its standard error, and seconds."""
        check_output(output)
        kind = output or self._kind
        rows = self.rows()
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = {name: [row.get(name) for row in rows] for name in names}
        return frame_of(columns, kind)

    def per_event(self, label: str | None = None, output: Output | None = None) -> Any:
        """Results event by event, of one model; of the only one if no label is given."""
        if label is None and len(self) != 1:
            raise ConfigError(f"per_event: which model? expected one of {', '.join(self)}")
        return self[label if label is not None else next(iter(self))].per_event(output)

    def compare(self, first: str, second: str, metric: str | None = None, **options: Any) -> Comparison:
        """Whether two of the models really differ."""
        return compare(self[first], self[second], metric, **options)

    def plot(self, metric: str | None = None, ax: Axes | None = None) -> Axes:
        """Draws the models side by side with 95 % intervals (needs matplotlib)."""
        from satf._plots import plot_results

        return plot_results(self, metric, ax)

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        metrics = list(dict.fromkeys(name for run in self._runs.values() for name in run.metrics))
        header = ["model", *metrics, "train s", "evaluate s"]
        body = []
        for run in self._runs.values():
            values, errors, report = run.metrics, run.errors, run.report
            cells = [run.label]
            for name in metrics:
                error = errors.get(name)
                cells.append(f"{values[name]:.4f}" + ("" if error is None else f" ± {error:.4f}"))
            for seconds in ("train_seconds", "evaluate_seconds"):
                cells.append("" if report[seconds] is None else f"{report[seconds]:.2f}")
            body.append(cells)
        return header, body

    def __repr__(self) -> str:
        header, body = self._cells()
        widths = [max(len(row[at]) for row in [header, *body]) for at in range(len(header))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in [header, *body]]
        return "\n".join([*lines, f"{self.counts['scored']:,} events scored; ± is one standard error"])

    def _repr_html_(self) -> str:
        header, body = self._cells()
        head = "".join(f"<th style='text-align:left'>{html.escape(cell)}</th>" for cell in header)
        rows = "".join("<tr>" + "".join(f"<td style='text-align:left'>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in body)
        caption = f"{self.counts['scored']:,} events scored; ± is one standard error"
        return f"<table><caption style='text-align:left'>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def frame_of(columns: dict[str, list[Any]], kind: Output) -> Any:
    """A frame of a few plain columns."""
    if kind == "pandas":
        import pandas

        return pandas.DataFrame(columns)
    if kind == "polars":
        import polars

        return polars.DataFrame(columns)
    if kind == "arrow":
        import pyarrow

        return pyarrow.table(columns)
    return columns


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
            protocol = _protocol(test=test, valid=valid, split=split, part=part, ties=ties, seed=seed, max_len=max_len)
            cut = _satf.cut(to_log(log, reading(columns), work), protocol, True, work)
            kind = log_kind(log)
            _tell(cut.warnings)
        runs = [_run(cut, label, model, options, memory_limit, work, kind) for label, model in _labelled(models)]
    for run in runs:
        _tell(run._core.warnings)
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
        model, keys = model
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
    if hasattr(model, "fit"):
        began = time.perf_counter()
        model.fit(TrainingSet(cut.training_set(), kind))
        seconds = time.perf_counter() - began
    return Run(cut.run_own(model, label or _label(model), seconds, options, work), kind)


class Comparison:
    """Whether two evaluations really differ, event by event. Differences are the second minus the first."""

    def __init__(self, first: str, second: str, events: int, unpaired: int, metrics: dict[str, dict[str, Any]]) -> None:
        self.first = first
        self.second = second
        #: Events that both have.
        self.events = events
        #: Events that only one of them has.
        self.unpaired = unpaired
        #: By metric: ``first``, ``second``, ``difference``, ``interval`` (95 %, bootstrap), ``p_value`` (permutation test).
        self.metrics = metrics

    @property
    def p_values(self) -> dict[str, float]:
        """p-values by metric."""
        return {name: metric["p_value"] for name, metric in self.metrics.items()}

    def rows(self) -> list[dict[str, Any]]:
        """One dict per metric."""
        rows = []
        for name, metric in self.metrics.items():
            low, high = metric["interval"] or (None, None)
            row = {"metric": name, "first": metric["first"], "second": metric["second"], "difference": metric["difference"]}
            rows.append({**row, "low": low, "high": high, "p_value": metric["p_value"]})
        return rows

    def to_frame(self, output: Output | None = None) -> Any:
        """One row per metric."""
        from satf._frames import usual

        check_output(output)
        rows = self.rows()
        return frame_of({name: [row[name] for row in rows] for name in rows[0]} if rows else {}, output or usual())

    def __repr__(self) -> str:
        lines = [f"{self.second} against {self.first}, {self.events:,} events"]
        for row in self.rows():
            interval = "" if row["low"] is None else f" [{row['low']:+.4f}, {row['high']:+.4f}]"
            lines.append(f"{row['metric']}: {row['first']:.4f} -> {row['second']:.4f}, {row['difference']:+.4f}{interval}, p = {row['p_value']:.4f}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        names = ["metric", self.first, self.second, "difference", "95 % interval", "p"]
        head = "".join(f"<th style='text-align:left'>{html.escape(name)}</th>" for name in names)
        body = ""
        for row in self.rows():
            interval = "" if row["low"] is None else f"{row['low']:+.4f} to {row['high']:+.4f}"
            cells = [row["metric"], f"{row['first']:.4f}", f"{row['second']:.4f}", f"{row['difference']:+.4f}", interval, f"{row['p_value']:.4f}"]
            body += "<tr>" + "".join(f"<td style='text-align:left'>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def compare(
    first: Run | PathLike | Any,
    second: Run | PathLike | Any,
    metric: str | None = None,
    *,
    unit: str = "user",
    draws: int = 10_000,
    seed: int = 0,
    threads: int | None = None,
) -> Comparison:
    """Tests whether two evaluations really differ: paired differences with a bootstrap interval and a permutation test.

    Both are a :class:`Run`, a file of results event by event, or a frame of them (:meth:`Run.per_event`). ``metric`` names one; without it,
    all that both have are compared. ``unit`` is what is drawn and swapped: all events of a ``user``, or each ``event``.
    """
    if unit not in ("user", "event"):
        raise ConfigError(f"unit={unit!r}: expected 'user' or 'event'")
    work = _satf.Work(threads, None)
    with tempfile.TemporaryDirectory() as folder:
        paths = [_per_event_file(run, Path(folder) / f"{number}.parquet") for number, run in enumerate((first, second))]
        found = _satf.compare_files(paths[0], paths[1], unit == "user", draws, seed, work)
    names = [run.label if isinstance(run, Run) else name for run, name in ((first, "first"), (second, "second"))]
    if names[0] == names[1]:
        names = [f"{name} ({place})" for name, place in zip(names, ("first", "second"))]
    metrics: dict[str, dict[str, Any]] = found["metrics"]
    if metric is not None:
        if metric not in metrics:
            raise ConfigError(f"metric={metric!r}: both have {', '.join(metrics)}")
        metrics = {metric: metrics[metric]}
    return Comparison(names[0], names[1], found["events"], found["unpaired"], metrics)


def _per_event_file(run: Any, path: Path) -> str:
    if isinstance(run, Run):
        run.save_per_event(path)
        return str(path)
    if isinstance(run, (str, os.PathLike)):
        return os.fspath(run)
    path = path.with_suffix(".csv")
    if hasattr(run, "write_csv"):
        run.write_csv(path)
    elif hasattr(run, "to_csv"):
        run.to_csv(path, index=False)
    else:
        import pyarrow
        from pyarrow import csv

        csv.write_csv(pyarrow.table(run), path)
    return str(path)


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
        from satf._frames import usual

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
    protocol = _protocol(test=test, valid=valid, split=split, ties=ties, seed=seed, max_len=max_len)
    with Progress(progress) as shown, tempfile.TemporaryDirectory() as temporary:
        work = _satf.Work(threads, shown.callback)
        core = to_log(log, reading(columns), work)
        folder = os.fspath(study) if study is not None else os.path.join(temporary, "study")
        found = _satf.tune(core, protocol, asked, keys, folder, work)
    _tell(found.pop("warnings"))
    return Study(found, model, keys)


class OrderReport:
    """Whether order helps to predict what comes next. :func:`order_matters` makes it."""

    def __init__(self, found: dict[str, Any]) -> None:
        #: Everything, as ``satf stats --order-matters --json`` has it.
        self.report = found

    @property
    def verdict(self) -> str:
        """``helps-clearly``, ``helps-a-little``, ``cannot-be-told`` or ``does-not-help``."""
        return str(self.report["verdict"])

    def to_frame(self, output: Output | None = None) -> Any:
        """One row per model: its score on real and on shuffled histories."""
        from satf._frames import usual

        check_output(output)
        rows: list[dict[str, Any]] = self.report["models"]
        return frame_of({name: [row[name] for row in rows] for name in rows[0]}, output or usual())

    def __bool__(self) -> bool:
        return self.verdict in ("helps-clearly", "helps-a-little")

    def __repr__(self) -> str:
        return "\n".join(self.report["sentences"])


def order_matters(
    log: LogLike,
    *,
    test: str | None = None,
    split: str = "calendar",
    repetitions: int = 3,
    most_events: int = 10_000,
    seed: int = 0,
    columns: Columns | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> OrderReport:
    """Whether order helps to predict what comes next on this log: models on real histories against the same on shuffled ones."""
    with Progress(progress) as shown:
        work = _satf.Work(threads, shown.callback)
        core = to_log(log, reading(columns), work)
        found = _satf.order_matters(core, test, repetitions, most_events, seed, split == "leave-one-out", work)
    _tell(found["warnings"])
    return OrderReport(found)


def generate(
    users: int | None = None,
    items: int | None = None,
    rows: int | None = None,
    *,
    seed: int = 1,
    days: int | None = None,
    output: Output | None = None,
) -> Any:
    """A made-up log as a frame: a shop with readable products in which order matters or, given ``users``, ``items`` and ``rows``, a log of
    that shape. The same as ``satf generate``."""
    from satf._frames import usual

    check_output(output)
    if items is None and rows is None:
        core = _satf.generate_shop(_protocol(users=users, seed=seed, days=days), None)
    elif users is None or items is None or rows is None or days is not None:
        raise ConfigError("generate: expected users, items and rows together, or users and days alone")
    else:
        core = _satf.generate_shape({"users": users, "items": items, "rows": rows, "seed": seed}, None)
    return to_frame(core.table(), output or usual())
