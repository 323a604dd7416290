"""Does order matter on this log?"""

from __future__ import annotations

from typing import Any

from satf import _satf
from satf._data import Columns, LogLike, reading, to_log
from satf._frames import Output, check_output, frame_of, usual
from satf._progress import Progress
from satf._split import tell


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
    tell(found["warnings"])
    return OrderReport(found)
