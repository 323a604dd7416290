"""A recommender that can stand where one of `implicit` stands.

>>> from satf.adapters.implicit import SatfRecommender  # doctest: +SKIP
>>> model = SatfRecommender()  # doctest: +SKIP
>>> model.fit(user_items)  # doctest: +SKIP
>>> ids, scores = model.recommend(0, user_items[0], N=10)  # doctest: +SKIP
"""

# mypy: disable-error-code="misc, import-untyped, import-not-found, unused-ignore"
# pyright: reportMissingImports=false, reportMissingTypeStubs=false

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import satf
from satf._frames import usual
from satf._model import _from_bytes
from satf.adapters._missing import missing
from satf.adapters._ties import places_in_ties

try:
    from implicit.recommender_base import RecommenderBase
    from implicit.utils import check_csr
except ImportError as error:
    raise missing("satf.adapters.implicit", "implicit", error) from error

#: The score of what is no recommendation, as implicit has it.
_LAST = -np.finfo(np.float32).max
#: Whole numbers beyond this have no exact value in single precision.
_EXACT_IN_SINGLE = 2**24
#: Items whose similar ones are looked up in one call: the table of them stays small.
_TARGETS_AT_ONCE = 64

_Lists = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]


class SatfRecommender(RecommenderBase):
    """A model of satf with the methods of implicit's models. Users are rows, items are columns.

    A matrix has no order, so ``order`` says what its values mean:

    * ``None``: nothing about order. What is above 0 was liked; all events of a user have the same time, as if in one basket.
    * ``"time"``: values are times in seconds since 1970 (in double precision: single precision is minutes off).
    * ``"rank"``: values sort each user's items, oldest first, and mean nothing else.

    ``model`` is one of :func:`satf.models`, ``keys`` are its keys. ``num_threads`` is 0 for all cores.

    A history is all it takes: recommendations follow from the rows of ``user_items``, whoever's they are, so ``userid`` only counts them, and
    ``recalculate_user`` changes nothing. After :meth:`fit` the model itself is in ``fitted``, a :class:`satf.Model` whose item ids are columns.
    """

    def __init__(self, model: str = "d-satf", *, order: str | None = None, seed: int = 0, num_threads: int = 0, **keys: Any) -> None:
        if order not in (None, "time", "rank"):
            raise ValueError(f"order={order!r}: expected None, 'time' or 'rank'")
        self.model = model
        self.order = order
        self.seed = seed
        self.num_threads = num_threads
        self.keys = keys
        self.fitted: satf.Model | None = None
        self.num_items = 0

    def fit(self, user_items: Any, show_progress: bool = True, callback: Callable[..., object] | None = None) -> None:
        """Learns from a matrix of users and items. ``callback(0, seconds)`` is called once, at the end."""
        began = time.perf_counter()
        user_items = check_csr(user_items)
        self.fitted = satf.fit(
            self._log(user_items),
            self.model,
            ties="basket",
            seed=self.seed,
            keep_histories=False,
            threads=self._threads,
            progress=None if show_progress else False,
            **self.keys,
        )
        self.num_items = int(user_items.shape[1])
        if callback is not None:
            callback(0, time.perf_counter() - began)

    def recommend(
        self,
        userid: Any,
        user_items: Any,
        N: int = 10,
        filter_already_liked_items: bool = True,
        filter_items: Any = None,
        recalculate_user: bool = False,
        items: Any = None,
    ) -> _Lists:
        """Ids and scores of the ``N`` best items for each row of ``user_items``; flat arrays for a single ``userid``.

        In a batch, shorter lists are filled up with -1. With ``items``, those that cannot be recommended come last, as implicit has it.
        """
        model = self._model()
        is_single = np.isscalar(userid)
        if getattr(user_items, "format", None) != "csr":
            raise ValueError(f"user_items is {type(user_items).__name__}: expected a CSR matrix; hint: .tocsr()")
        users = 1 if is_single else len(userid)
        if user_items.shape[0] != users:
            raise ValueError(f"user_items has {user_items.shape[0]} rows for {users} users: expected one row for each, user_items[userid]")
        if user_items.shape[1] != self.num_items:
            raise ValueError(f"user_items has {user_items.shape[1]} columns: expected {self.num_items}, as when the model was fitted")
        known = self._known()
        chosen = self._chosen(filter_items, items)
        if items is not None:
            N = min(N, len(chosen))
        rows = self._known_rows(user_items, known)
        lists = self._nothing(users, N)
        if rows.nnz:
            table = model.recommend(
                np.flatnonzero(np.diff(rows.indptr)),
                max(N, 1),
                log=self._log(rows),
                filter_viewed=filter_already_liked_items,
                exclude=None if filter_items is None else chosen[known[chosen]],
                items_to_recommend=None if items is None else chosen[known[chosen]],
                output="table",
                threads=self._threads,
                progress=False,
            )
            _place(lists, table.column("user_id"), table)
        if items is not None:
            _append_missing(lists, chosen)
        return _single(lists) if is_single else lists

    def similar_items(
        self,
        itemid: Any,
        N: int = 10,
        recalculate_item: bool = False,
        item_users: Any = None,
        filter_items: Any = None,
        items: Any = None,
    ) -> _Lists:
        """Ids and similarities of the ``N`` most similar items, each item itself first with similarity 1."""
        if recalculate_item:
            raise NotImplementedError("recalculate_item: what an item is like follows from the whole log; hint: fit again")
        targets = np.atleast_1d(np.asarray(itemid))
        self._check_items(targets)
        chosen = self._chosen(filter_items, items)
        if items is not None:
            N = min(N, len(chosen))
        lists = self._nothing(len(targets), N)
        similar = self._similar(targets, self.num_items if items is not None else N + len(chosen))
        for row, target in enumerate(targets.tolist()):
            if target not in similar:
                continue
            ids, scores = similar[target]
            if filter_items is not None or items is not None:
                kept = np.isin(ids, chosen, invert=items is None)
                ids, scores = ids[kept], scores[kept]
            lists[0][row, : len(ids)] = ids[:N]
            lists[1][row, : len(ids)] = scores[:N]
        if items is not None:
            _append_missing(lists, chosen)
        return _single(lists) if np.isscalar(itemid) else lists

    def similar_users(self, userid: Any, N: int = 10, filter_users: Any = None, users: Any = None) -> _Lists:
        """Not there: models of satf keep nothing of single users."""
        raise NotImplementedError("similar_users: models of satf know items and histories, and keep nothing of single users to compare")

    def save(self, fileobj_or_path: Any) -> None:
        """Writes the recommender in NumPy's format ``.npz``, like implicit's own. (``fitted.save`` writes the model for the program satf.)"""
        settings = {name: value for name, value in self.__dict__.items() if name != "fitted"}
        arrays = {"settings": np.array(json.dumps(settings))}
        if self.fitted is not None:
            arrays["model"] = np.frombuffer(self.fitted.to_bytes(), dtype=np.uint8)
        np.savez(fileobj_or_path, **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, fileobj_or_path: Any) -> SatfRecommender:
        """Reads what :meth:`save` wrote."""
        if isinstance(fileobj_or_path, str) and not fileobj_or_path.endswith(".npz"):
            fileobj_or_path += ".npz"
        with np.load(fileobj_or_path, allow_pickle=False) as arrays:
            if "settings" not in arrays:
                raise ValueError(f"{fileobj_or_path}: not a file of SatfRecommender, it holds {', '.join(arrays)}")
            recommender = cls()
            recommender.__dict__.update(json.loads(str(arrays["settings"])))
            if "model" in arrays:
                recommender.fitted = _from_bytes(arrays["model"].tobytes(), usual())
        return recommender

    @property
    def _threads(self) -> int | None:
        return self.num_threads or None

    def _model(self) -> satf.Model:
        if self.fitted is None:
            raise ValueError("the model is not fitted; hint: fit(user_items)")
        return self.fitted

    def _similar(self, targets: npt.NDArray[Any], wanted: int) -> dict[int, tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """For each target that the model knows, itself and the items most similar to it."""
        asked = np.unique(targets)
        asked = asked[self._known()[asked]]
        found = {}
        for part in np.array_split(asked, -(-len(asked) // _TARGETS_AT_ONCE) or 1):
            table = self._model().similar(part, max(wanted, 1), output="table", threads=self._threads)
            of, items = np.asarray(table.column("target_item_id")), np.asarray(table.column("item_id"))
            similarities = np.asarray(table.column("similarity"))
            for target in part.tolist():
                own = of == target
                found[target] = np.append(target, items[own]), np.append(np.float32(1.0), similarities[own])
        return found

    def _known(self) -> npt.NDArray[np.bool_]:
        """Which columns the model knows: those in which something was."""
        known = np.zeros(self.num_items, dtype=bool)
        known[np.asarray(self._model().items, dtype=np.int64)] = True
        return known

    def _chosen(self, filter_items: Any, items: Any) -> npt.NDArray[np.int64]:
        """The items of whichever list is given, each once."""
        if filter_items is not None and items is not None:
            raise ValueError("filter_items and items cannot both be given")
        given = items if items is not None else filter_items
        chosen = np.asarray([] if given is None else given, dtype=np.int64)
        if items is None:
            # What is not there need not be filtered.
            chosen = chosen[(chosen >= 0) & (chosen < self.num_items)]
        self._check_items(chosen)
        first = np.unique(chosen, return_index=True)[1]
        return chosen[np.sort(first)]

    def _check_items(self, items: npt.NDArray[Any]) -> None:
        wrong = items[(items < 0) | (items >= self.num_items)]
        if wrong.size:
            raise IndexError(f"item {wrong[0]} is not in the model: expected numbers from 0 to {self.num_items - 1}")

    def _known_rows(self, user_items: Any, known: npt.NDArray[np.bool_]) -> Any:
        """The rows without what is no event and without items that the model does not know."""
        from scipy.sparse import csr_matrix

        kept = known[user_items.indices]
        if self.order is None:
            kept &= user_items.data > 0
        before = np.concatenate([[0], np.cumsum(kept)])
        return csr_matrix((user_items.data[kept], user_items.indices[kept], before[user_items.indptr]), shape=user_items.shape)

    @staticmethod
    def _nothing(rows: int, width: int) -> _Lists:
        return np.full((rows, width), -1, dtype=np.int32), np.full((rows, width), _LAST, dtype=np.float32)

    def _log(self, user_items: Any) -> satf.Log:
        users = np.repeat(np.arange(user_items.shape[0], dtype=np.int64), np.diff(user_items.indptr))
        items, values = user_items.indices.astype(np.int64), user_items.data
        if not np.isfinite(values).all():
            raise ValueError("user_items holds values that are no finite numbers; expected what was liked (or times, or ranks)")
        if self.order != "rank":
            mixed = np.argsort(places_in_ties(user_items.shape[1], self.seed)[items], kind="stable")
            users, items, values = users[mixed], items[mixed], values[mixed]
        if self.order is None:
            liked = values > 0
            users, items = users[liked], items[liked]
            return satf.read_log({"user_id": users, "item_id": items, "timestamp": np.zeros(len(users), dtype=np.int64)})
        if self.order == "time":
            if values.dtype == np.float32 and values.size and values.max() > _EXACT_IN_SINGLE:
                raise ValueError("times in single precision are minutes off; hint: build the matrix with dtype=np.float64")
            return satf.read_log({"user_id": users, "item_id": items, "timestamp": values.astype(np.int64)}, time_unit="seconds")
        oldest_first = np.argsort(values, kind="stable")
        return satf.read_log({"user_id": users[oldest_first], "item_id": items[oldest_first]}, order_is_time=True)


def _place(lists: _Lists, rows: npt.NDArray[np.int64], table: Any) -> None:
    """Puts the rows of a table where they belong: a row per user, a column per rank."""
    columns = np.asarray(table.column("rank"), dtype=np.int64) - 1
    fits = columns < lists[0].shape[1]
    rows = np.asarray(rows)[fits]
    lists[0][rows, columns[fits]] = np.asarray(table.column("item_id"))[fits]
    lists[1][rows, columns[fits]] = np.asarray(table.column("score"))[fits]


def _append_missing(lists: _Lists, chosen: npt.NDArray[np.int64]) -> None:
    """Fills lists up with those of the chosen items that are not in them."""
    for ids in lists[0]:
        free = np.flatnonzero(ids < 0)
        if free.size:
            ids[free] = chosen[~np.isin(chosen, ids)][: free.size]


def _single(lists: _Lists) -> _Lists:
    there = lists[0][0] >= 0
    return lists[0][0][there], lists[1][0][there]
