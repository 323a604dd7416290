"""The scores of one model."""

from __future__ import annotations

import os
from typing import Any

from satf import _satf
from satf._data import PathLike
from satf._frames import Output, check_output, to_frame


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
