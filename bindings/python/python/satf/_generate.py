"""Made-up logs."""

from __future__ import annotations

from typing import Any

from satf import _satf
from satf._errors import ConfigError
from satf._frames import Output, check_output, to_frame, usual
from satf._split import protocol_of


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
    check_output(output)
    if items is None and rows is None:
        core = _satf.generate_shop(protocol_of(users=users, seed=seed, days=days), None)
    elif users is None or items is None or rows is None or days is not None:
        raise ConfigError("generate: expected users, items and rows together, or users and days alone")
    else:
        core = _satf.generate_shape({"users": users, "items": items, "rows": rows, "seed": seed}, None)
    return to_frame(core.table(), output or usual())
