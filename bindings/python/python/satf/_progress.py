"""One line about work that is under way, on a terminal or in a notebook."""

from __future__ import annotations

import sys
import time
from types import TracebackType

#: Seconds of silence, at the beginning and between two lines.
_PAUSE = 0.25


def _is_notebook() -> bool:
    kernel = sys.modules.get("IPython")
    shell = kernel.get_ipython() if kernel is not None and hasattr(kernel, "get_ipython") else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


class Progress:
    """Shows ``stage 42 % (12/30 s)``; quiet unless someone looks at it."""

    def __init__(self, wanted: bool | None) -> None:
        if wanted is None:
            wanted = sys.stderr is not None and (sys.stderr.isatty() or _is_notebook())
        self.callback = self._show if wanted else None
        self._began = time.monotonic()
        self._stage_began = self._began
        self._stage: str | None = None
        self._last = self._began
        self._width = 0

    def _show(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._stage_began = stage, now
        if now - self._last < _PAUSE:
            return
        self._last = now
        spent = now - self._stage_began
        line = stage or "working"
        if total > 0:
            share = min(done / total, 1.0)
            filled = int(20 * share)
            line = f"{line} {'█' * filled}{'░' * (20 - filled)} {100 * share:3.0f} %"
            if share > 0.02:
                line += f" {spent:.0f} s, {spent / share - spent:.0f} s left"
        else:
            line = f"{line} {spent:.0f} s"
        self._write(line)

    def _write(self, line: str) -> None:
        padding = " " * max(0, self._width - len(line))
        self._width = len(line)
        sys.stderr.write(f"\r{line}{padding}")
        sys.stderr.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0
