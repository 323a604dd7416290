"""A scorer for pipelines of `LensKit`.

>>> from lenskit.pipeline import topn_pipeline  # doctest: +SKIP
>>> from satf.adapters.lenskit import SatfScorer  # doctest: +SKIP
>>> pipeline = topn_pipeline(SatfScorer(model="d-satf"))  # doctest: +SKIP
>>> pipeline.train(dataset)  # doctest: +SKIP
"""

# mypy: disable-error-code="misc, call-arg, import-untyped, import-not-found, no-any-return, unused-ignore"
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportGeneralTypeIssues=false, reportCallIssue=false

from __future__ import annotations

from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

import satf
from satf.adapters._missing import missing
from satf.adapters._ties import places_in_ties

try:
    import pandas
    from lenskit.data import Dataset, ItemList, QueryInput, RecQuery
    from lenskit.pipeline import Component
    from lenskit.training import Trainable, TrainingOptions
    from pydantic import BaseModel
except ImportError as error:
    raise missing("satf.adapters.lenskit", "lenskit", error) from error

#: Where item lists of LensKit have their times: as they were, or the newest of several events with one item.
_TIMES = ("timestamp", "last_time")


class SatfConfig(BaseModel, extra="forbid"):
    """Configuration of :class:`SatfScorer`: one of :func:`satf.models` and its keys."""

    model: str = "d-satf"
    keys: dict[str, Any] = {}
    ties: str = "shuffle"
    seed: int = 0
    memory: Optional[Union[int, str]] = None
    threads: Optional[int] = None


class SatfScorer(Component[ItemList], Trainable):
    """A model of satf as a component: scores items for what a user did.

    It learns from users (or whatever else has items), items and ``timestamp``; other attributes play no part. Without timestamps all events have the same
    time, as if in one basket.

    Scores follow from the items of the query. What is known of their order is used: the field ``timestamp`` (or ``last_time``) if the list has it, which
    is so for histories that the pipeline looks up; else the order of the list if it is ``ordered`` or the items of a session; else they are
    taken for one basket. Items that are in no interaction, and queries without any known item, have no score (NaN).

    After training the model itself is in ``fitted``, a :class:`satf.Model`.
    """

    config: SatfConfig
    fitted: Optional[satf.Model] = None

    def is_trained(self) -> bool:
        """Whether it has learned."""
        return self.fitted is not None

    def train(self, data: Dataset, options: TrainingOptions = TrainingOptions()) -> None:
        """Learns from the interactions of a dataset."""
        if self.is_trained() and not options.retrain:
            return
        rows = data.interactions().pandas(ids=True)
        owner = next((name for name in rows.columns if name.endswith("_id") and name != "item_id"), None)
        if owner is None:
            raise satf.DataError(f"the interactions have the columns {', '.join(rows.columns)}: expected users, or something else that has items")
        has_times = "timestamp" in rows.columns
        log = {
            "user_id": rows[owner].to_numpy(),
            "item_id": rows["item_id"].to_numpy(),
            "timestamp": rows["timestamp"].to_numpy() if has_times else np.zeros(len(rows), dtype=np.int64),
        }
        self.fitted = satf.fit(
            log,
            self.config.model,
            ties=self.config.ties if has_times else "basket",
            seed=self.config.seed,
            memory=self.config.memory,
            keep_histories=False,
            threads=self.config.threads,
            progress=False,
            **self.config.keys,
        )
        self.items = data.items
        #: For every item of the vocabulary its place in the scores of the model; -1 if the model does not know it.
        self.places: npt.NDArray[np.int64] = pandas.Index(self.fitted.items).get_indexer(data.items.ids())

    def __call__(self, query: QueryInput, items: ItemList) -> ItemList:
        """Scores of items for a query."""
        if self.fitted is None:
            raise satf.RecommendError("the scorer is not trained; hint: pipeline.train(dataset)")
        history = self._history(RecQuery.create(query))
        scores = np.full(len(items), np.nan, dtype=np.float32)
        if history:
            places = self._places(items)
            known = places >= 0
            scores[known] = self.fitted.score([history], threads=self.config.threads)[0][places[known]]
        return ItemList(items, scores=scores)

    def _places(self, items: ItemList) -> npt.NDArray[np.int64]:
        numbers = items.numbers(vocabulary=self.items, missing="negative")
        return np.where(numbers >= 0, self.places[numbers], -1)

    def _history(self, query: RecQuery) -> list[Any]:
        """What the query holds, oldest first: ids, and lists of ids that have the same time."""
        items = getattr(query, "query_items", None)
        if items is None:
            # LensKit before 2026
            items = getattr(query, "user_items", None)
        if items is None or len(items) == 0:
            return []
        known = self._places(items) >= 0
        ids, numbers = np.asarray(items.ids())[known], items.numbers(vocabulary=self.items, missing="negative")[known]
        times = next((times for times in map(items.field, _TIMES) if times is not None), None)
        if times is None and (items.ordered or items is getattr(query, "session_items", None)):
            return ids.tolist()
        times = np.zeros(len(ids)) if times is None else np.asarray(times)[known]
        order = np.lexsort((places_in_ties(len(self.places), self.config.seed)[numbers], times))
        starts = np.flatnonzero(np.diff(times[order])) + 1
        return [part.tolist() for part in np.split(ids[order], starts) if len(part)]
