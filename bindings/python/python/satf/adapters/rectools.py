"""A model that can stand where one of `RecTools` stands.

>>> from satf.adapters.rectools import SatfModel  # doctest: +SKIP
>>> model = SatfModel("d-satf").fit(dataset)  # doctest: +SKIP
>>> model.recommend(users, dataset, k=10, filter_viewed=True)  # doctest: +SKIP
"""

# mypy: disable-error-code="misc, import-untyped, import-not-found, no-any-return, unused-ignore"
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportIncompatibleMethodOverride=false, reportAttributeAccessIssue=false

from __future__ import annotations

import typing as tp

import numpy as np
import numpy.typing as npt

import satf
from satf.adapters._missing import missing

try:
    import pandas
    from rectools import Columns
    from rectools.dataset import Dataset
    from rectools.models.base import FixedColdRecoModelMixin, ModelBase, ModelConfig
except ImportError as error:
    raise missing("satf.adapters.rectools", "rectools", error) from error

#: Items whose similar ones are looked up in one call: the table of them stays small.
_TARGETS_AT_ONCE = 64

_Ids = npt.NDArray[tp.Any]
_Reco = tuple[_Ids, _Ids, npt.NDArray[tp.Any]]


class SatfModelConfig(ModelConfig):
    """Configuration of :class:`SatfModel`."""

    model: str = "d-satf"
    keys: tp.Dict[str, tp.Any] = {}
    ties: str = "shuffle"
    seed: int = 0
    memory: tp.Optional[tp.Union[int, str]] = None
    threads: tp.Optional[int] = None


class SatfModel(FixedColdRecoModelMixin, ModelBase[SatfModelConfig]):
    """A model of satf with the methods of RecTools' models. It learns from users, items and ``datetime``; weights and features play no part.

    ``model`` is one of :func:`satf.models`, ``keys`` are its keys. ``ties`` is the order of a user's events with equal times.

    * Hot users get what follows from their interactions in the dataset that is given to ``recommend``: it need not be the one that the model was
      fitted on, and its internal ids may differ.
    * Warm and cold users, and hot ones none of whose items the model knows, get the most popular items; the score is how often an item occurred.
    * Items that are in no interaction of the fit, or not in the dataset that is given to ``recommend``, are never recommended.

    After ``fit`` the model itself is in ``fitted``, a :class:`satf.Model` with the dataset's external item ids: ``fitted.save(path)`` writes the file
    that the program satf serves.
    """

    recommends_for_warm = False
    recommends_for_cold = True

    config_class = SatfModelConfig

    def __init__(
        self,
        model: str = "d-satf",
        keys: tp.Optional[tp.Dict[str, tp.Any]] = None,
        ties: str = "shuffle",
        seed: int = 0,
        memory: tp.Optional[tp.Union[int, str]] = None,
        threads: tp.Optional[int] = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose=verbose)
        self.model = model
        self.keys = dict(keys or {})
        self.ties = ties
        self.seed = seed
        self.memory = memory
        self.threads = threads
        self.fitted: tp.Optional[satf.Model] = None

    def _get_config(self) -> SatfModelConfig:
        return SatfModelConfig(
            cls=self.__class__,
            model=self.model,
            keys=self.keys,
            ties=self.ties,
            seed=self.seed,
            memory=self.memory,
            threads=self.threads,
            verbose=self.verbose,
        )

    @classmethod
    def _from_config(cls, config: SatfModelConfig) -> "SatfModel":
        return cls(config.model, config.keys, config.ties, config.seed, config.memory, config.threads, config.verbose)

    def _fit(self, dataset: Dataset) -> None:
        rows = dataset.interactions.df
        self.fitted = satf.fit(
            {
                "user_id": _user_ids(dataset)[rows[Columns.User].to_numpy()],
                "item_id": _item_ids(dataset)[rows[Columns.Item].to_numpy()],
                "timestamp": rows[Columns.Datetime].to_numpy(),
            },
            self.model,
            ties=self.ties,
            seed=self.seed,
            memory=self.memory,
            keep_histories=False,
            threads=self.threads,
            progress=None if self.verbose else False,
            **self.keys,
        )

    def _recommend_u2i(
        self, user_ids: _Ids, dataset: Dataset, k: int, filter_viewed: bool, sorted_item_ids_to_recommend: tp.Optional[_Ids]
    ) -> _Reco:
        model, known = self._model(), self._known(dataset)
        rows = dataset.interactions.df
        rows = rows[np.isin(rows[Columns.User], user_ids) & known[rows[Columns.Item].to_numpy()]]
        has_history = np.isin(user_ids, rows[Columns.User].unique())
        others = self._recommend_cold(user_ids[~has_history], dataset, k, sorted_item_ids_to_recommend)
        if not has_history.any():
            return others
        ids = _item_ids(dataset)
        only = self._allowed(dataset, known, sorted_item_ids_to_recommend)
        table = model.recommend(
            user_ids[has_history],
            int(k),
            log={
                "user_id": rows[Columns.User].to_numpy(),
                "item_id": ids[rows[Columns.Item].to_numpy()],
                "timestamp": rows[Columns.Datetime].to_numpy(),
            },
            filter_viewed=filter_viewed,
            items_to_recommend=None if only is None else ids[only],
            output="table",
            threads=self.threads,
            progress=False,
        )
        own = np.asarray(table.column("user_id")), self._internal(dataset, table.column("item_id")), np.asarray(table.column("score"))
        return own if has_history.all() else _joined([own, others])

    def _get_cold_reco(
        self, dataset: Dataset, k: int, sorted_item_ids_to_recommend: tp.Optional[_Ids]
    ) -> tuple[_Ids, npt.NDArray[np.float64]]:
        model = self._model()
        counts = np.asarray(model.item_counts, dtype=np.float64)
        items = pandas.Index(dataset.item_id_map.external_ids).get_indexer(model.items)
        allowed = items >= 0
        if sorted_item_ids_to_recommend is not None:
            allowed &= np.isin(items, sorted_item_ids_to_recommend)
        items, counts = items[allowed], counts[allowed]
        best = np.argsort(-counts, kind="stable")[:k]
        return items[best], counts[best]

    def _recommend_i2i(
        self, target_ids: _Ids, dataset: Dataset, k: int, sorted_item_ids_to_recommend: tp.Optional[_Ids]
    ) -> _Reco:
        model, known, ids = self._model(), self._known(dataset), _item_ids(dataset)
        only = self._allowed(dataset, known, sorted_item_ids_to_recommend)
        found = [self._recommend_cold(target_ids[~known[target_ids]], dataset, k, only)]
        asked = target_ids[known[target_ids]]
        for part in np.array_split(asked, -(-len(asked) // _TARGETS_AT_ONCE)) if len(asked) else []:
            table = model.similar(ids[part], int(k) if only is None else model.num_items, output="table", threads=self.threads)
            of, items = (self._internal(dataset, table.column(name)) for name in ("target_item_id", "item_id"))
            rows = pandas.DataFrame({"of": of, "item": items, "score": np.asarray(table.column("similarity"))})
            # An item is most similar to itself. Callers that do not want it leave it out.
            itself = pandas.DataFrame({"of": part, "item": part, "score": np.ones(len(part), dtype=np.float32)})
            rows = pandas.concat([itself, rows])
            if only is not None:
                rows = rows[rows["item"].isin(only)]
            place = pandas.Series(np.arange(len(part)), index=part)
            rows = rows.iloc[np.argsort(place[rows["of"]].to_numpy(), kind="stable")]
            rows = rows.groupby("of", sort=False).head(k)
            found.append((rows["of"].to_numpy(), rows["item"].to_numpy(), rows["score"].to_numpy()))
        return _joined(found[1:] + found[:1])

    def _model(self) -> satf.Model:
        assert self.fitted is not None, "recommend() of the base checks that the model is fitted"
        return self.fitted

    def _known(self, dataset: Dataset) -> npt.NDArray[np.bool_]:
        """For every internal item id of a dataset whether the model knows the item."""
        places: _Ids = pandas.Index(self._model().items).get_indexer(dataset.item_id_map.external_ids)
        return places >= 0

    def _allowed(self, dataset: Dataset, known: npt.NDArray[np.bool_], chosen: tp.Optional[_Ids]) -> tp.Optional[_Ids]:
        """Internal ids of the items that may be recommended: those of a dataset, if it does not have all that the model knows."""
        if chosen is not None:
            return chosen[known[chosen]]
        return None if known.sum() == self._model().num_items else np.flatnonzero(known)

    @staticmethod
    def _internal(dataset: Dataset, items: tp.Any) -> _Ids:
        internal: _Ids = pandas.Index(dataset.item_id_map.external_ids).get_indexer(items)
        return internal


def _item_ids(dataset: Dataset) -> _Ids:
    """External item ids by internal ones, if they are of a kind that a model can hold."""
    ids: _Ids = np.asarray(dataset.item_id_map.external_ids)
    if _is_plain(ids):
        return ids
    raise TypeError(f"item ids such as {ids[0]!r} of type {ids.dtype}: expected integers or strings; hint: convert the column item_id")


def _user_ids(dataset: Dataset) -> _Ids:
    """External user ids by internal ones; the internal ones where a log cannot hold those. A model keeps neither."""
    ids: _Ids = np.asarray(dataset.user_id_map.external_ids)
    return ids if _is_plain(ids) else np.asarray(dataset.user_id_map.internal_ids)


def _is_plain(ids: _Ids) -> bool:
    return ids.dtype.kind in "iuU" or (ids.dtype.kind == "O" and all(isinstance(one, str) for one in ids))


def _joined(parts: tp.Sequence[_Reco]) -> _Reco:
    first, second, third = (np.concatenate([np.asarray(part[at]) for part in parts]) for at in range(3))
    return first, second, third
