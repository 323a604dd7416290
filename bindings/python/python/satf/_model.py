"""Models: fitted, saved, asked."""

from __future__ import annotations

import html
import os
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Union

from satf import _satf
from satf._data import Columns, Id, Log, LogLike, PathLike, ids_of, is_frame, is_own, is_path, log_kind, memory_bytes, reading, to_log
from satf._errors import ConfigError, DataError, FitError, RecommendError, SatfWarning
from satf._frames import Output, check_output, kind_of, to_frame, usual
from satf._progress import Progress

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from matplotlib.axes import Axes

#: Unknown ids that are named in a warning; the rest is counted.
_NAMED = 5

#: A list of histories, each a list of ids, oldest first; a dict of them by user; a frame of events; a list of users; a path.
HistoriesLike = Any


def fit(
    log: LogLike,
    model: str = "d-satf",
    *,
    ties: str = "shuffle",
    seed: int = 0,
    memory: int | str | None = None,
    quantize: str | None = None,
    with_statistics: bool = False,
    keep_histories: bool = True,
    columns: Columns | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    **keys: Any,
) -> Model:
    """Fits a model to a log: the one that ``satf train`` makes of the same events, to the bit.

    ``log`` is a frame (pandas, Polars, PyArrow, DuckDB, anything with the Arrow PyCapsule interface), a dict of columns, a NumPy array, a
    list of rows, or the path of a file. ``model`` is one of :func:`models`, and ``keys`` are its keys.

    ``ties`` is the order of a user's events with equal times (``shuffle``, ``file`` or ``basket``). ``memory`` bounds what training takes,
    such as ``"2GiB"``. ``quantize`` rounds item factors to fewer bytes (``half`` or ``int8``). With ``with_statistics`` the model keeps
    the events themselves: then :meth:`Model.add` and :meth:`Model.forget` work. Unless ``keep_histories`` is false, the model remembers in memory
    (not in its file) what each user did, so that it can be asked for users.

    >>> model = satf.fit([("ann", "tent", 1), ("ann", "stove", 2), ("bob", "tent", 3), ("bob", "stove", 4)])
    >>> model.recommend([["tent"]], k=1, output="table").column("item_id")
    ['stove']
    """
    options = {
        "ties": ties,
        "seed": seed,
        "memory": memory_bytes(memory),
        "quantize": quantize,
        "with_statistics": with_statistics,
        "keep_histories": keep_histories,
    }
    with Progress(progress) as shown:
        work = _satf.Work(threads, shown.callback)
        core = to_log(log, reading(columns), work)
        fitted = _satf.fit(core, model, options, keys, not is_own(log), work)
    return Model(fitted, log_kind(log))


def load(path: PathLike, *, copy: bool = False) -> Model:
    """Reads a model file.

    The model uses its arrays where they lie in the file, through a memory map, so the file must not be changed in place while the model lives
    (to replace it by another file is fine). With ``copy`` it is read into memory and does not depend on the file any more.
    """
    return Model(_satf.Model.load(os.fspath(path), copy), usual())


def models() -> Any:
    """The models there are: name, summary, keys with their defaults."""
    return _satf.models()


def _from_bytes(data: bytes, kind: Output) -> Model:
    return Model(_satf.Model.from_bytes(data), kind)


class Model:
    """A fitted model with its catalogue. :func:`fit` and :func:`load` make one.

    It can be pickled and copied (through the bytes of its file), and asked from several threads at once.
    """

    def __init__(self, core: _satf.Model, kind: Output) -> None:
        self._core = core
        self._kind: Output = kind

    # What it is

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._core.name

    @property
    def num_items(self) -> int:
        """How many items it knows."""
        return self._core.num_items

    @property
    def items(self) -> list[Id]:
        """Ids of the items it knows, in the order of its rows and scores: ascending."""
        items: list[Id] = ids_of(self._core.items().column("item_id"))
        return items

    @property
    def item_counts(self) -> npt.NDArray[np.uint32]:
        """How often each item occurred in the log."""
        counts: npt.NDArray[np.uint32] = self._core.items().column("count")
        return counts

    @property
    def keys(self) -> dict[str, Any]:
        """Every key of its configuration; None where the log was to say it, and then it is in :attr:`learned`."""
        return dict(self._core.describe()["manifest"]["configuration"])

    @property
    def learned(self) -> dict[str, float | None]:
        """What training found by itself."""
        return dict(self._core.describe()["learned"])

    @property
    def has_statistics(self) -> bool:
        """Whether it keeps the events it learned from."""
        return self._core.has_statistics

    @property
    def checksum(self) -> str | None:
        """The checksum of the file it came from, if it came from one."""
        return self._core.checksum

    def inspect(self) -> dict[str, Any]:
        """What ``satf inspect`` shows: what it is, what it learned from, its arrays."""
        shown: dict[str, Any] = self._core.inspect()
        return shown

    @property
    def item_embeddings(self) -> npt.NDArray[np.float32]:
        """Item factors, one row per item of :attr:`items`: a read-only view of the model's own memory, no copy."""
        factors = self._core.item_factors()
        if factors is None:
            raise RecommendError(f"{self.name} has no item factors; d-satf, pure-svd, ga-satf, la-satf and sasrec have")
        return factors

    @property
    def attention(self) -> npt.NDArray[np.float64]:
        """What an item of a history counts by its lag (0 = newest)."""
        weights = self._core.lag_weights()
        if weights is None:
            raise RecommendError(f"{self.name} learns no weights by lag; d-satf, ga-satf and la-satf do")
        return weights

    def plot_attention(self, ax: Axes | None = None) -> Axes:
        """Draws :attr:`attention` (needs matplotlib)."""
        from satf._plots import plot_attention

        return plot_attention(self, ax)

    # What it answers

    def recommend(
        self,
        histories: HistoriesLike = None,
        k: int = 10,
        *,
        filter_viewed: bool = True,
        items_to_recommend: Iterable[Id] | None = None,
        exclude: Iterable[Id] | None = None,
        boost: Mapping[Any, float | str] | None = None,
        allow_seen: Iterable[Id] | None = None,
        explain: bool = False,
        fallback: str | None = None,
        log: LogLike = None,
        columns: Columns | None = None,
        output: Output | None = None,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> Any:
        """What comes next, best first: rows of ``user_id``, ``item_id``, ``score`` and ``rank``.

        ``histories`` is one of

        * a list of histories, each a list of ids, oldest first (a list within it is a basket): users are numbered from 0;
        * a dict of such lists by user;
        * a frame of events, or the path of a file of them, which are grouped by user;
        * a flat list of users that the model learned from (or of ``log``), or None for all of them.

        No user has to be known to the model: a history is all it takes.

        ``filter_viewed`` leaves out what the history holds, but for the items of ``allow_seen``. ``items_to_recommend`` are the only ones
        allowed, ``exclude`` are not. ``boost`` adds a number to the scores of items, or multiplies them (``"*1.5"``). ``explain`` adds the columns
        ``shares`` (what each past item adds to the score), ``base`` and ``boost``. ``fallback="popular"`` gives the most popular items
        where no item of a history is known, and says so in the column ``fallback``.

        Results come as the kind of frame that went in, or as ``output`` says: ``pandas``, ``polars``, ``arrow`` or ``table``.
        """
        check_output(output)
        if fallback not in (None, "popular"):
            raise ConfigError(f"fallback={fallback!r}: expected None or 'popular'")
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise ConfigError(f"k={k!r}: expected a whole number from 1")
        request = {
            "k": k,
            "filter_viewed": filter_viewed,
            "only": None if items_to_recommend is None else ids_of(items_to_recommend),
            "exclude": None if exclude is None else ids_of(exclude),
            "allow_seen": None if allow_seen is None else ids_of(allow_seen),
            "boost": None if boost is None else dict(boost),
            "popular": fallback == "popular",
            "explain": explain,
        }
        with Progress(progress) as shown:
            work = _satf.Work(threads, shown.callback)
            asked, kind = self._histories(histories, log, columns, work)
            table, unknown = self._core.recommend(asked, request, work)
        self._warn(asked, unknown, fallback)
        return to_frame(table, output or kind)

    def score(
        self,
        histories: HistoriesLike,
        *,
        log: LogLike = None,
        columns: Columns | None = None,
        threads: int | None = None,
    ) -> npt.NDArray[np.float32]:
        """Scores of all items, one row per history, one column per item of :attr:`items`. Seen items are scored like all others."""
        work = _satf.Work(threads, None)
        asked, _ = self._histories(histories, log, columns, work)
        return self._core.score(asked, work)

    def similar(self, items: Id | Iterable[Id], k: int = 10, *, output: Output | None = None, threads: int | None = None) -> Any:
        """The items most similar to each of these: rows of ``target_item_id``, ``item_id``, ``similarity`` and ``rank``.

        Similar is what could stand in the same place. What comes *after* an item is ``recommend([[item]])``.
        """
        check_output(output)
        table, _ = self._core.similar(ids_of(items), k, _satf.Work(threads, None))
        return to_frame(table, output or self._kind)

    def explain(self, history: Iterable[Id], items: Id | Iterable[Id], *, output: Output | None = None) -> Any:
        """What each item of a history adds to the scores of some items: ``base`` and the ``share`` of all its rows sum to ``score``."""
        check_output(output)
        return to_frame(self._core.explain(history, ids_of(items)), output or self._kind)

    def _histories(self, data: HistoriesLike, log: LogLike, columns: Columns | None, work: _satf.Work) -> tuple[_satf.Histories, Output]:
        options = reading(columns)
        if log is not None:
            return self._histories_of_log(data, log, options, work)
        if data is None:
            return self._core.histories_of_users(None), self._kind
        if is_frame(data):
            return self._core.histories_of_log(to_log(data, options, work, needs_times=False)), log_kind(data)
        if is_path(data):
            return self._core.histories_of_file(os.fspath(data), options, work), self._kind
        if isinstance(data, Mapping):
            return self._core.histories_of_lists(list(data.values()), list(data)), self._kind
        kind = kind_of(data) if type(data).__module__.split(".")[0] in ("pandas", "polars") else self._kind
        listed = ids_of(data) if not isinstance(data, (int, bytes)) else None
        if listed is None:
            raise DataError(f"{data!r} is neither users nor histories: expected a list; hint: one user is [{data!r}]")
        if listed and not isinstance(listed[0], (str, int)) and not _is_integer(listed[0]):
            return self._core.histories_of_lists(listed, None), kind
        if listed and not self._core.knows_users:
            raise RecommendError(
                f"a flat list names users, and this model does not have the histories it learned from; hint: for one history, "
                f"give a list of it, [[{listed[0]!r}, ..]]; for users, give log= with their events"
            )
        return self._core.histories_of_users(listed), kind

    def _histories_of_log(self, users: Any, log: LogLike, options: dict[str, Any], work: _satf.Work) -> tuple[_satf.Histories, Output]:
        core = to_log(log, options, work, needs_times=False)
        every = self._core.histories_of_log(core)
        return (every if users is None else every.of_users(ids_of(users))), log_kind(log)

    def _warn(self, asked: _satf.Histories, unknown: list[tuple[str, Id]], fallback: str | None) -> None:
        if unknown:
            named = ", ".join(f"{item!r} in {_WORDS.get(place, place)}" for place, item in unknown[:_NAMED])
            more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
            warnings.warn(f"the model does not know {named}{more}", SatfWarning, stacklevel=3)
        empty = asked.without_known_items
        if empty:
            got = "they got the most popular items" if fallback == "popular" else "they got nothing; hint: fallback='popular'"
            warnings.warn(f"{empty:,} of {len(asked):,} histories have no item that the model knows: {got}", SatfWarning, stacklevel=3)

    # How it is kept

    def save(self, path: PathLike) -> None:
        """Writes the model to a file, whole or not at all."""
        self._core.save(os.fspath(path))

    def to_bytes(self) -> bytes:
        """The bytes of the file that :meth:`save` writes."""
        return self._core.to_bytes()

    @staticmethod
    def load(path: PathLike, *, copy: bool = False) -> Model:
        """The same as :func:`load`."""
        return load(path, copy=copy)

    def __reduce__(self) -> tuple[Any, tuple[bytes, Output]]:
        return _from_bytes, (self.to_bytes(), self._kind)

    def __copy__(self) -> Model:
        # Nothing of the native model ever changes.
        return Model(self._core, self._kind)

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return Model(self._core, self._kind)

    # How it follows the log

    def log(self) -> Log:
        """The events it learned from, if it was fitted ``with_statistics``."""
        self._check_statistics("log")
        return Log(self._core.log(), self._kind)

    def add(self, events: LogLike, *, columns: Columns | None = None, threads: int | None = None, progress: bool | None = None) -> Model:
        """Adds events: the model becomes, to the bit, what it would be had they been in its log. Returns the model itself."""
        self._check_statistics("add")
        user_type, item_type = self._core.id_types()
        with Progress(progress) as shown:
            work = _satf.Work(threads, shown.callback)
            options = {} if is_own(events) else reading(columns, user_type=user_type, item_type=item_type)
            self._core = self._core.added(to_log(events, options, work), work)
        return self

    def forget(
        self,
        users: Id | Iterable[Id] | None = None,
        items: Id | Iterable[Id] | None = None,
        *,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> Model:
        """Forgets users and items: the model becomes, to the bit, what it would be had they never been in its log. Returns the model itself."""
        self._check_statistics("forget")
        if users is None and items is None:
            raise ConfigError("forget: expected users, items or both")
        with Progress(progress) as shown:
            work = _satf.Work(threads, shown.callback)
            gone = [[] if ids is None else ids_of(ids) for ids in (users, items)]
            self._core, _, unknown = self._core.without(gone[0], gone[1], work)
        if unknown:
            warnings.warn(f"not in the log, so nothing to forget: {', '.join(unknown[:_NAMED])}", SatfWarning, stacklevel=2)
        return self

    def _check_statistics(self, method: str) -> None:
        if not self.has_statistics:
            raise FitError(f"{method}: the model was fitted without statistics, so nothing is known of single events; hint: fit(.., with_statistics=True)")

    # How it looks

    def __repr__(self) -> str:
        dataset = self._core.describe()["manifest"]["dataset"]
        return f"<satf.Model {self.name}: {dataset['items']:,} items, learned from {dataset['rows']:,} events of {dataset['users']:,} users>"

    def _repr_html_(self) -> str:
        shown = self._core.describe()
        manifest = shown["manifest"]
        dataset = manifest["dataset"]
        rows = [
            ("learned from", f"{dataset['rows']:,} events of {dataset['users']:,} users and {dataset['items']:,} items"),
            ("size", f"{shown['memory_bytes'] / 2**20:,.1f} MiB in memory"),
        ]
        learned = {name: value for name, value in shown["learned"].items() if value is not None and name in manifest["configuration"]}
        if learned:
            rows.append(("from the log", ", ".join(f"{name} {value:.4g}" for name, value in sorted(learned.items()))))
        given = {name: value for name, value in manifest["configuration"].items() if value is not None and name not in learned}
        rows.append(("keys", ", ".join(f"{name} {value}" for name, value in given.items())))
        rows.append(("holds about users", "their events" if self.has_statistics else str(shown["user_data"]["kind"])))
        body = "".join(f"<tr><th style='text-align:left'>{html.escape(name)}</th><td style='text-align:left'>{html.escape(text)}</td></tr>" for name, text in rows)
        return f"<table><caption style='text-align:left'><b>satf.Model</b> {html.escape(self.name)}</caption>{body}</table>"


#: What lists of a request are called here.
_WORDS = {"exclude": "exclude", "only": "items_to_recommend", "repeatable": "allow_seen", "factors": "boost", "boosts": "boost"}


def _is_integer(value: object) -> bool:
    # Arrays of one element have an index too.
    return hasattr(value, "__index__") and not hasattr(value, "__len__")


ModelLike = Union[str, "tuple[str, Mapping[str, Any]]", Model, "os.PathLike[str]", Any]
