"""Scores of models, side by side."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from satf._compare import Comparison, compare
from satf._errors import ConfigError
from satf._frames import Output, check_output, frame_of
from satf._run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
