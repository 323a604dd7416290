"""A log cut by time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from satf import _satf
from satf._data import Columns, Id, Log, LogLike, ids_of, log_kind, reading, to_log
from satf._errors import SatfWarning
from satf._frames import Output, check_output, to_frame

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


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
    protocol = protocol_of(test=test, valid=valid, split=split, ties=ties, seed=seed)
    core = _satf.cut(to_log(log, reading(columns), _satf.Work(None, None)), protocol, valid is not None, None)
    tell(core.warnings)
    return Split(core, log_kind(log))


def protocol_of(**given: Any) -> dict[str, Any]:
    """What was given of a protocol."""
    return {name: value for name, value in given.items() if value is not None}


def tell(messages: Sequence[str], stacklevel: int = 3) -> None:
    """Warns of what may mislead."""
    for message in messages:
        warnings.warn(message, SatfWarning, stacklevel=stacklevel)
