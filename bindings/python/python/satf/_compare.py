"""Are two evaluations really different?"""

from __future__ import annotations

import html
import os
import tempfile
from pathlib import Path
from typing import Any

from satf import _satf
from satf._data import PathLike
from satf._errors import ConfigError
from satf._frames import Output, check_output, frame_of, usual
from satf._run import Run


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
