"""Events in: from frames, arrays, lists and files, all to one native log."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Union

from satf import _satf
from satf._errors import ConfigError, DataError, SatfWarning
from satf._frames import Output, check_output, is_installed, kind_of, to_frame
from satf._progress import Progress

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: An id of a user or an item.
Id = Union[int, str]

#: The path of a file.
PathLike = Union[str, "os.PathLike[str]"]

#: Whatever events come in: a frame of pandas or Polars, a table or reader of PyArrow, a relation of DuckDB, anything with the Arrow
#: PyCapsule interface; a dict of columns, a NumPy array of two or three columns, a list of rows; a path or a list of paths.
LogLike = Any

#: Names of the columns by role: ``{"user": ..., "item": ..., "time": ...}``.
Columns = Mapping[str, str]

_ROLES = {"user": "user", "user_id": "user", "item": "item", "item_id": "item", "time": "time", "timestamp": "time", "datetime": "time"}
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def reading(columns: Columns | None = None, **options: Any) -> dict[str, Any]:
    """Options of reading as the native module takes them."""
    chosen = {name: value for name, value in options.items() if value is not None}
    for role, name in (columns or {}).items():
        if role not in _ROLES:
            raise ConfigError(f"columns: {role!r} is not a role; expected 'user', 'item' or 'time'")
        chosen[_ROLES[role]] = str(name)
    return chosen


def memory_bytes(memory: int | str | None) -> int | None:
    """``"2GiB"``, ``"500 MB"`` or a number, in bytes."""
    if memory is None or isinstance(memory, int):
        return memory
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", str(memory), re.IGNORECASE)
    if found is None:
        raise ConfigError(f"memory={memory!r}: expected bytes as a number, or a text such as '2GiB'")
    number, unit, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** _UNITS[unit.lower()])


def is_path(data: object) -> bool:
    """Whether this names a file."""
    return isinstance(data, (str, os.PathLike))


def is_frame(data: object) -> bool:
    """Whether this is a table of events rather than a list of something."""
    if isinstance(data, (Log, _satf.Log)):
        return True
    package, name = type(data).__module__.split(".")[0], type(data).__name__
    if package in ("pandas", "polars"):
        return name in ("DataFrame", "LazyFrame")
    if package == "pyarrow":
        # A column of it speaks the interface as well.
        return hasattr(data, "schema")
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


class Log:
    """Events of users, items and times, read once to be used often.

    Every function of the package that takes a log takes one of these; :func:`read_log` makes it.
    """

    def __init__(self, core: _satf.Log, kind: Output) -> None:
        self._core = core
        self._kind: Output = kind

    def __len__(self) -> int:
        return len(self._core)

    @property
    def num_users(self) -> int:
        """How many users there are."""
        return self._core.num_users

    @property
    def num_items(self) -> int:
        """How many items there are."""
        return self._core.num_items

    @property
    def has_times(self) -> bool:
        """Whether events have times, and not only an order."""
        return self._core.has_times

    def statistics(self) -> dict[str, Any]:
        """Size and shape of the log, as ``satf stats`` shows them."""
        statistics: dict[str, Any] = self._core.statistics()
        return statistics

    def to_frame(self, output: Output | None = None) -> Any:
        """The events as a frame with the columns ``user_id``, ``item_id`` and ``timestamp``."""
        check_output(output)
        return to_frame(self._core.table(), output or self._kind)

    def __repr__(self) -> str:
        times = "" if self.has_times else ", in order, without times"
        return f"<satf.Log of {len(self):,} events: {self.num_users:,} users, {self.num_items:,} items{times}>"


def read_log(
    data: LogLike,
    *,
    columns: Columns | None = None,
    format: str | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    time_unit: str | None = None,
    order_is_time: bool = False,
    user_type: str | None = None,
    item_type: str | None = None,
    skip_bad_rows: int = 0,
    threads: int | None = None,
    progress: bool | None = None,
) -> Log:
    """Reads events once, with options for how.

    Columns are recognised by their names (``user_id``, ``user``, ``customer_id``, ..; ``item_id``, ``item``, ``product_id``, ..;
    ``timestamp``, ``datetime``, ``time``, ``date``, ..) or given as ``columns={"user": .., "item": .., "time": ..}``.

    ``format``, ``header`` and ``delimiter`` concern files, which are otherwise detected. ``time_unit`` is the unit of times that are
    numbers (``seconds``, ``milliseconds``, ``microseconds``, ``nanoseconds``, ``yyyymmdd``). With ``order_is_time`` the order of the rows is
    the time. ``user_type`` and ``item_type`` are ``"integer"`` or ``"string"``. Up to ``skip_bad_rows`` bad rows are left out with a
    warning; one more is a :class:`DataError`.

    >>> log = satf.read_log([("ann", "tent", 1), ("ann", "stove", 2), ("bob", "tent", 3)])
    >>> log
    <satf.Log of 3 events: 2 users, 2 items>
    """
    options = reading(
        columns,
        format=format,
        header=header,
        delimiter=delimiter,
        time_unit=time_unit,
        order_is_time=order_is_time or None,
        user_type=user_type,
        item_type=item_type,
        skip_bad_rows=skip_bad_rows or None,
    )
    with Progress(progress) as shown:
        core = to_log(data, options, _satf.Work(threads, shown.callback))
    return Log(core, kind_of(data))


def to_log(data: LogLike, options: dict[str, Any], work: _satf.Work, needs_times: bool = True) -> _satf.Log:
    """Whatever events come in, as a native log."""
    if isinstance(data, Log):
        return _unread(data._core, options)
    if isinstance(data, _satf.Log):
        return _unread(data, options)
    core = _read(data, options, work, needs_times)
    for warning in core.warnings:
        warnings.warn(warning, SatfWarning, stacklevel=4)
    return core


def is_own(data: LogLike) -> bool:
    """Whether a log was read by the caller, who may want it again."""
    return isinstance(data, (Log, _satf.Log))


def log_kind(data: LogLike) -> Output:
    """The kind of frame for results on this log."""
    return data._kind if isinstance(data, Log) else kind_of(data)


def _unread(core: _satf.Log, options: dict[str, Any]) -> _satf.Log:
    if options:
        raise ConfigError(f"this log was read already, so {', '.join(sorted(options))} cannot be given; hint: give them to read_log")
    return core


def _read(data: LogLike, options: dict[str, Any], work: _satf.Work, needs_times: bool) -> _satf.Log:
    if data is None:
        raise DataError("no log: expected a frame, columns, rows or the path of a file, found None")
    if is_path(data):
        return _satf.Log.from_paths([os.fspath(data)], options, work)
    package, name = type(data).__module__.split(".")[0], type(data).__name__
    if package == "pandas" and name == "DataFrame":
        return _read_pandas(data, options, work, needs_times)
    if package == "polars" and name in ("DataFrame", "LazyFrame"):
        return _read_polars(data, options, work, needs_times)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return _satf.Log.from_arrow(data, "the table", options, needs_times, work)
    if hasattr(data, "fetch_arrow_reader") or hasattr(data, "fetch_record_batch"):
        # A relation of DuckDB from before it spoke the interface itself.
        reader = data.fetch_arrow_reader() if hasattr(data, "fetch_arrow_reader") else data.fetch_record_batch()
        return _satf.Log.from_arrow(reader, "the relation", options, needs_times, work)
    if isinstance(data, Mapping):
        columns = {str(name): _column(str(name), values) for name, values in data.items()}
        return _satf.Log.from_columns(columns, "the columns", options, needs_times, work)
    if package == "numpy" and hasattr(data, "dtype"):
        return _satf.Log.from_columns(_columns_of_array(data), "the array", options, needs_times, work)
    if isinstance(data, (list, tuple)) or hasattr(data, "__iter__"):
        return _read_list(list(data), options, work, needs_times)
    raise DataError(
        f"a log cannot be read from {type(data).__name__}: expected a frame (pandas, Polars, PyArrow, DuckDB, or anything with "
        "__arrow_c_stream__), a dict of columns, a NumPy array, a list of rows, or the path of a file"
    )


def _read_list(data: list[Any], options: dict[str, Any], work: _satf.Work, needs_times: bool) -> _satf.Log:
    if not data:
        raise DataError("the log has no rows: the list is empty")
    if all(is_path(part) for part in data):
        return _satf.Log.from_paths([os.fspath(part) for part in data], options, work)
    first = data[0]
    if not isinstance(first, (list, tuple)) or len(first) not in (2, 3):
        raise DataError(f"row 1 is {first!r}: expected rows of a user, an item and, unless the order is the time, a time")
    names = ("user_id", "item_id", "timestamp")[: len(first)]
    for number, row in enumerate(data, 1):
        if not isinstance(row, (list, tuple)) or len(row) != len(names):
            raise DataError(f"row {number} is {row!r}: expected {len(names)} values ({', '.join(names)}), as the rows before it have")
    columns = {name: _column(name, [row[at] for row in data]) for at, name in enumerate(names)}
    return _satf.Log.from_columns(columns, "the rows", options, needs_times, work)


def _read_polars(frame: Any, options: dict[str, Any], work: _satf.Work, needs_times: bool) -> _satf.Log:
    lazy = type(frame).__name__ == "LazyFrame"
    names = frame.collect_schema().names() if lazy else frame.columns
    wanted = [names[at] for at in _satf.choose_columns(names, "the frame", options, needs_times)]
    frame = frame.select(wanted)
    return _satf.Log.from_arrow(frame.collect() if lazy else frame, "the frame", options, needs_times, work)


def _read_pandas(frame: Any, options: dict[str, Any], work: _satf.Work, needs_times: bool) -> _satf.Log:
    names = [str(name) for name in frame.columns]
    places = _satf.choose_columns(names, "the frame", options, needs_times)
    wanted = {names[at]: frame.iloc[:, at] for at in places}
    for at, series in zip(places, wanted.values()):
        is_time = len(places) == 3 and at == places[2]
        if series.dtype.kind == "f" and not is_time:
            hint = "; pandas makes floats of integers where a value is missing: drop those rows, or use the type Int64"
            missing = hint if bool(series.isna().any()) else "; hint: .astype('int64')"
            raise DataError(f"the frame: column `{names[at]}` is of type {series.dtype}, expected integers or strings{missing}")
    if is_installed("pyarrow"):
        import pyarrow

        arrays = {name: _arrow_of(pyarrow, name, series) for name, series in wanted.items()}
        return _satf.Log.from_arrow(pyarrow.table(arrays), "the frame", options, needs_times, work)
    columns = {name: _column(name, series.to_numpy()) for name, series in wanted.items()}
    return _satf.Log.from_columns(columns, "the frame", options, needs_times, work)


def _arrow_of(pyarrow: Any, name: str, series: Any) -> Any:
    try:
        return pyarrow.array(series, from_pandas=True)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"the frame: column `{name}` holds values of different types: {error}") from error


def _columns_of_array(array: Any) -> dict[str, Any]:
    if array.dtype.names is not None:
        return {name: _column(name, array[name]) for name in array.dtype.names}
    names = ("user_id", "item_id", "timestamp")
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        raise DataError(f"an array of shape {array.shape}: expected two or three columns: user, item and, unless the order is the time, time")
    return {name: _column(name, array[:, at]) for at, name in enumerate(names[: array.shape[1]])}


def _column(name: str, values: Any) -> Any:
    """A column as the native module takes it: a list, an array of numbers, or times as a pair of integers and unit."""
    import numpy as np

    if type(values).__module__.split(".")[0] in ("pandas", "polars") and hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if not isinstance(values, np.ndarray):
        if not isinstance(values, Iterable) or isinstance(values, (str, bytes)):
            raise DataError(f"the column {name} is {values!r}: expected a list or an array")
        return _listed(name, list(values))
    if values.ndim != 1:
        raise DataError(f"the column {name} has {values.ndim} dimensions: expected one")
    kind = values.dtype.kind
    if kind in "iu":
        return np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
    if kind == "f":
        return np.ascontiguousarray(values, dtype=np.float32 if values.dtype.itemsize < 4 else np.float64)
    if kind == "M":
        return _times(values)
    if kind in "UOT":
        return _listed(name, values.tolist())
    raise DataError(f"the column {name} is of type {values.dtype}: expected integers, strings or times")


def _times(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], str]:
    import numpy as np

    unit, step = np.datetime_data(values.dtype)
    if unit not in ("s", "ms", "us", "ns") or step != 1:
        values = values.astype("datetime64[s]" if unit in ("Y", "M", "W", "D", "h", "m") else "datetime64[us]")
        unit = np.datetime_data(values.dtype)[0]
    return np.ascontiguousarray(values).view(np.int64), unit


def _listed(name: str, values: list[Any]) -> Any:
    """A list of plain values; dates of Python become those of NumPy, and numbers of NumPy those of Python."""
    import datetime

    import numpy as np

    first = next((value for value in values if value is not None), None)
    if isinstance(first, (datetime.datetime, datetime.date)):

        def plain(value: Any) -> Any:
            if isinstance(value, datetime.datetime) and value.tzinfo is not None:
                return value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
            return value

        try:
            return _times(np.array([plain(value) for value in values], dtype="datetime64[us]"))
        except (TypeError, ValueError) as error:
            raise DataError(f"the column {name} holds something that is not a time: {error}") from error
    if isinstance(first, np.generic):
        return [value.item() if isinstance(value, np.generic) else value for value in values]
    return values


def ids_of(values: Any) -> list[Any]:
    """Ids as a list: of a list, an array, a series, or a frame's column."""
    if isinstance(values, (str, bytes, int)):
        return [values]
    if hasattr(values, "to_pylist"):
        return list(values.to_pylist())
    if hasattr(values, "to_list"):
        return list(values.to_list())
    if hasattr(values, "tolist"):
        listed = values.tolist()
        return listed if isinstance(listed, list) else [listed]
    return list(values)
