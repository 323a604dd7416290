"""Kinds of frames: which one came in, and how a table goes out as one."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any, Literal

from satf._errors import ConfigError

if TYPE_CHECKING:
    from satf._satf import Table

#: What results come as. ``"table"`` is :class:`satf.Table`, which needs no other package.
Output = Literal["pandas", "polars", "arrow", "table"]

_NAMES = ("pandas", "polars", "arrow", "table")


def is_installed(module: str) -> bool:
    """Whether a package can be imported; nothing is imported to find out."""
    return module in sys.modules or importlib.util.find_spec(module) is not None


def usual() -> Output:
    """The kind of frame for results of what is not a frame: the first that is installed."""
    if is_installed("pandas"):
        return "pandas"
    if is_installed("pyarrow"):
        return "arrow"
    return "polars" if is_installed("polars") else "table"


def kind_of(data: object) -> Output:
    """The kind of frame that some data is, or the usual one if it is none."""
    package = type(data).__module__.split(".")[0]
    if package == "pandas":
        return "pandas"
    if package == "polars":
        return "polars"
    if package in ("pyarrow", "duckdb", "_duckdb", "arro3", "nanoarrow"):
        return "arrow" if is_installed("pyarrow") else usual()
    return usual()


def check_output(output: str | None) -> None:
    """An error if there is no such kind of frame."""
    if output is not None and output not in _NAMES:
        raise ConfigError(f"output={output!r}: expected one of {', '.join(map(repr, _NAMES))}, or None for what came in")


def to_frame(table: Table, kind: Output) -> Any:
    """A table as a frame of this kind."""
    if kind == "polars":
        import polars

        return polars.DataFrame(table)
    if kind == "arrow":
        import pyarrow

        return pyarrow.table(table)
    if kind == "pandas":
        return _to_pandas(table)
    return table


def _to_pandas(table: Table) -> Any:
    import pandas

    if is_installed("pyarrow"):
        try:
            import pyarrow
        except ImportError:  # It may be too new for the NumPy that is here.
            pass
        else:
            return pyarrow.table(table).to_pandas()
    columns: dict[str, Any] = {}
    for name in table.column_names:
        column = table.column(name)
        columns[name] = pandas.to_datetime(column, unit="us", utc=True) if table.is_time(name) else column
    return pandas.DataFrame(columns)


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
