"""Models of several packages behind one face: trained on the same events, asked for the same lists.

A contestant is imported only in the environment of its own package. It has

* ``grid``: the configurations that are tried on the validation set;
* ``modules``: what is imported before anything is timed;
* ``fit(problem, **configuration)``, which is timed as training;
* ``recommend(problem, k)``, which is timed too and gives one row of items per history, best first, -1 where there are fewer.
"""

from __future__ import annotations

import importlib.metadata
import itertools
from typing import Any

import numpy as np


def product(**values: list[Any]) -> list[dict[str, Any]]:
    """All combinations of some values."""
    return [dict(zip(values, chosen)) for chosen in itertools.product(*values.values())]


class Problem:
    """Events to learn from, and histories to recommend for. Items and users are numbers from 0."""

    def __init__(self, path: str) -> None:
        with np.load(path) as arrays:
            self.users, self.items, self.times = arrays["users"], arrays["items"], arrays["times"]
            self.indptr, self.indices = arrays["indptr"], arrays["indices"]
            self.num_items = int(arrays["num_items"])

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def history(self, event: int) -> Any:
        return self.indices[self.indptr[event] : self.indptr[event + 1]]

    def train_matrix(self) -> Any:
        from scipy.sparse import csr_matrix

        matrix = csr_matrix((np.ones(len(self.users), dtype=np.float32), (self.users, self.items)), shape=(int(self.users.max()) + 1, self.num_items))
        matrix.data[:] = 1
        return matrix

    def history_matrix(self) -> Any:
        from scipy.sparse import csr_matrix

        values = np.ones(len(self.indices), dtype=np.float32)
        matrix = csr_matrix((values, self.indices, self.indptr), shape=(len(self), self.num_items))
        matrix.sum_duplicates()
        matrix.data[:] = 1
        return matrix


def rows(owners: Any, items: Any, count: int, k: int) -> Any:
    """Lists of a long table, already in the order of their ranks, as an array."""
    owners, items = np.asarray(owners, dtype=np.int64), np.asarray(items, dtype=np.int64)
    order = np.argsort(owners, kind="stable")
    owners, items = owners[order], items[order]
    place = np.arange(len(owners)) - np.searchsorted(owners, owners)
    lists = np.full((count, k), -1, dtype=np.int64)
    kept = place < k
    lists[owners[kept], place[kept]] = items[kept]
    return lists


class Satf:
    package = "satf"
    modules = ["satf"]
    model = "d-satf"
    grid: list[dict[str, Any]] = [{}]

    def fit(self, problem: Problem, **keys: Any) -> None:
        import satf

        log = satf.read_log({"user_id": problem.users, "item_id": problem.items, "timestamp": problem.times}, time_unit="microseconds")
        # Ties are in the order that was drawn when the log was cut, for everybody.
        self.fitted = satf.fit(log, self.model, ties="file", keep_histories=False, **keys)

    def recommend(self, problem: Problem, k: int) -> Any:
        lists = [problem.history(event).tolist() for event in range(len(problem))]
        table = self.fitted.recommend(lists, k, output="table")
        return rows(table.column("user_id"), table.column("item_id"), len(problem), k)


class SatfEase(Satf):
    model = "ease"
    grid = product(regularization=[50.0, 200.0, 800.0, 3000.0])


class Implicit:
    package = "implicit"
    modules = ["implicit.als", "implicit.nearest_neighbours", "scipy.sparse"]

    def recommend(self, problem: Problem, k: int) -> Any:
        return self.model.recommend(np.arange(len(problem)), problem.history_matrix(), N=k, **self.asked)[0]  # type: ignore[attr-defined]


class ImplicitAls(Implicit):
    grid = product(factors=[64, 128], regularization=[0.01, 1.0], alpha=[1.0, 10.0])
    # What a user is like follows from the history that is given, not from the training set.
    asked = {"recalculate_user": True}

    def fit(self, problem: Problem, **options: Any) -> None:
        from implicit.als import AlternatingLeastSquares

        self.model = AlternatingLeastSquares(iterations=15, random_state=1, use_gpu=False, **options)
        self.model.fit(problem.train_matrix(), show_progress=False)


class ImplicitItemItem(Implicit):
    asked: dict[str, Any] = {}

    def fit(self, problem: Problem, **options: Any) -> None:
        import implicit.nearest_neighbours

        self.model = getattr(implicit.nearest_neighbours, self.recommender)(**options)  # type: ignore[attr-defined]
        self.model.fit(problem.train_matrix(), show_progress=False)


class ImplicitBm25(ImplicitItemItem):
    recommender = "BM25Recommender"
    grid = product(K=[20, 100, 500], B=[0.25, 0.75])


class ImplicitTfidf(ImplicitItemItem):
    recommender = "TFIDFRecommender"
    grid = product(K=[20, 50, 100, 200, 500])


class RecToolsEase:
    package = "rectools"
    modules = ["pandas", "rectools.dataset", "rectools.models"]
    grid = product(regularization=[50.0, 200.0, 800.0, 3000.0])

    def dataset(self, users: Any, items: Any, num_items: int) -> Any:
        import pandas as pd
        from rectools.dataset import Dataset, IdMap, Interactions

        frame = pd.DataFrame({"user_id": users, "item_id": items, "weight": 1.0, "datetime": pd.Timestamp("2020-01-01")})
        frame = frame.drop_duplicates(["user_id", "item_id"])
        # Item numbers must be those of the training: a dataset made by `construct` would number items anew.
        users_map, items_map = (IdMap.from_values(np.arange(count)) for count in (int(np.max(users)) + 1, num_items))
        return Dataset(users_map, items_map, Interactions(frame))

    def fit(self, problem: Problem, **options: Any) -> None:
        from rectools.models import EASEModel

        self.model = EASEModel(**options).fit(self.dataset(problem.users, problem.items, problem.num_items))

    def recommend(self, problem: Problem, k: int) -> Any:
        # One more user, who is not asked for, has the last item: the matrix of a dataset is as wide as its highest item.
        owners = np.append(np.repeat(np.arange(len(problem)), np.diff(problem.indptr)), len(problem))
        dataset = self.dataset(owners, np.append(problem.indices, problem.num_items - 1), problem.num_items)
        table = self.model.recommend(np.arange(len(problem)), dataset, k=k, filter_viewed=True)
        return rows(table["user_id"], table["item_id"], len(problem), k)


class LensKitItemKnn:
    package = "lenskit"
    modules = ["lenskit.batch", "lenskit.data", "lenskit.knn", "lenskit.operations", "lenskit.pipeline", "pandas"]
    grid = product(max_nbrs=[20, 50, 100])

    def fit(self, problem: Problem, **options: Any) -> None:
        import pandas as pd
        from lenskit.data import from_interactions_df
        from lenskit.knn import ItemKNNScorer
        from lenskit.pipeline import topn_pipeline

        events = pd.DataFrame({"user_id": problem.users, "item_id": problem.items}).drop_duplicates()
        self.pipeline = topn_pipeline(ItemKNNScorer(feedback="implicit", **options))
        self.pipeline.train(from_interactions_df(events))

    def recommend(self, problem: Problem, k: int) -> Any:
        from lenskit.data import ItemList, RecQuery
        from lenskit.operations import recommend

        lists = np.full((len(problem), k), -1, dtype=np.int64)
        for event in range(len(problem)):
            query = RecQuery(history_items=ItemList(np.unique(problem.history(event))))
            found = recommend(self.pipeline, query, k).ids()
            lists[event, : len(found)] = np.asarray(found)
        return lists


CONTESTANTS: dict[str, Any] = {
    "satf d-satf, defaults": Satf,
    "satf ease": SatfEase,
    "implicit ALS": ImplicitAls,
    "implicit BM25 item-item": ImplicitBm25,
    "implicit TF-IDF item-item": ImplicitTfidf,
    "RecTools EASE": RecToolsEase,
    "LensKit item-item kNN": LensKitItemKnn,
}


def version(package: str) -> str:
    """The version that is installed."""
    return importlib.metadata.version(package)
