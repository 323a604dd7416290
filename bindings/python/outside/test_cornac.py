"""Cornac's `NextItemEvaluation` as an independent evaluator: the same scores as ours, on one split, to 1e-6.

Cornac judges the last item of each test session by the items before it. Our protocol in its terms: one session for each event to predict, the
user's history and the event itself. Cornac ranks what the user has already, and we do not: its model here scores those items last.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cornac.eval_methods import NextItemEvaluation
from cornac.metrics import HitRatio, NDCG
from cornac.models import NextItemRecommender

import satf

def log_of(name: str) -> satf.Log:
    """A log without ties: Cornac knows nothing of baskets."""
    if name == "shop":
        log = satf.read_log(satf.generate(users=300, output="table"))
    else:
        path = Path(os.environ.get("SATF_DATA", "")) / "ml-100k.csv.gz"
        if not path.is_file():
            pytest.skip("SATF_DATA does not name a folder with ml-100k.csv.gz")
        log = satf.read_log(path)
    table = log.to_frame("table")
    rows = dict(zip(zip(_list(table, "user_id"), _list(table, "timestamp")), _list(table, "item_id")))
    return satf.read_log([(user, item, time) for (user, time), item in rows.items()], time_unit="microseconds")


class FromScores(NextItemRecommender):
    """A model of satf as Cornac sees one. It learns from Cornac's own training set."""

    def __init__(self, name: str, fitted: satf.Model) -> None:
        super().__init__(name=name, trainable=False)
        self.fitted = fitted

    def fit(self, train_set: Any, val_set: Any = None) -> FromScores:
        super().fit(train_set, val_set)
        # Cornac numbers items as they come.
        self.ids = [item for item, _ in sorted(train_set.iid_map.items(), key=lambda pair: pair[1])]
        place = {item: at for at, item in enumerate(self.fitted.items)}
        self.places = np.array([place[item] for item in self.ids[: train_set.num_items]])
        return self

    def score(self, user_idx: int, history_items: Any, **kwargs: Any) -> Any:
        scores = self.fitted.score([[self.ids[item] for item in history_items]])[0][self.places]
        scores[np.asarray(history_items)] = -np.inf
        # Equal scores: Cornac leaves their order open, here the lower id comes first. Minus the rank has no ties.
        best_first = np.lexsort((self.places, -scores))
        ranks = np.empty(len(scores))
        ranks[best_first] = np.arange(len(scores))
        return -ranks


@pytest.mark.parametrize("model", ["d-satf", "transitions", "ease", "mp"])
@pytest.mark.parametrize(("name", "test"), [("shop", "2weeks"), ("ml-100k", "2days")])
def test_an_independent_evaluator_agrees(name: str, test: str, model: str) -> None:
    cut = satf.split(log_of(name), test=test)
    train = cut.training_set.to_frame("table")
    past = list(zip(_list(train, "user_id"), _list(train, "item_id"), _list(train, "timestamp")))
    fitted = satf.fit(satf.read_log(past, time_unit="microseconds"), model)
    ours = satf.evaluate(cut, {model: fitted}, at=[1, 10])[model].metrics
    assert ours == satf.evaluate(cut, [model], at=[1, 10])[model].metrics
    targets = _list(cut._core.events(), "item_id")
    future = []
    for event, (history, target) in enumerate(zip(cut.histories, targets)):
        future += [(f"event {event}", item, at) for at, item in enumerate([*history, target])]
    evaluation = NextItemEvaluation.from_splits(past, future, fmt="SIT", exclude_unknowns=True, seed=1)
    metrics = [NDCG(k=10), HitRatio(k=10), HitRatio(k=1)]
    theirs, _ = evaluation.evaluate(FromScores(model, fitted), metrics, user_based=False)
    found = theirs.metric_avg_results
    assert found["NDCG@10"] == pytest.approx(ours["NDCG@10"], abs=1e-6)
    assert found["HitRatio@10"] == pytest.approx(ours["HR@10"], abs=1e-6)
    assert found["HitRatio@1"] == pytest.approx(ours["HR@1"], abs=1e-6)
    print(f"{name} {model}: {len(targets)} events, NDCG@10 {ours['NDCG@10']:.9f} here, {found['NDCG@10']:.9f} by Cornac")


def _list(table: Any, name: str) -> list[Any]:
    column = table.column(name)
    return column.tolist() if hasattr(column, "tolist") else list(column)
