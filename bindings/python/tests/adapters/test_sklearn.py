"""The estimator for scikit-learn, with the real package."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, PredefinedSplit, TimeSeriesSplit, cross_val_score

import satf
from satf.adapters.sklearn import SatfEstimator


@pytest.fixture(scope="module")
def events() -> Any:
    return satf.generate(users=200, output="pandas").sort_values("timestamp", kind="stable", ignore_index=True)


def test_a_grid_search_finds_the_better_key(events: Any) -> None:
    grid = {"keys__regularization": [1.0, 1e7], "model": ["ease"]}
    search = GridSearchCV(SatfEstimator(), grid, cv=TimeSeriesSplit(3), error_score="raise").fit(events)
    assert search.best_params_["keys__regularization"] == 1.0
    assert search.best_estimator_.model_.keys["regularization"] == 1.0
    assert 0 < search.best_score_ < 1


def test_a_search_over_processes_is_the_same(events: Any) -> None:
    scores = [cross_val_score(SatfEstimator("transitions"), events, cv=TimeSeriesSplit(2), n_jobs=jobs) for jobs in (1, 2)]
    assert np.array_equal(scores[0], scores[1])


@pytest.mark.parametrize("name", ["d-satf", "transitions", "mp"])
def test_the_score_is_that_of_evaluate(events: Any, name: str) -> None:
    # No ties, so that nothing depends on how they are broken.
    events = events.drop_duplicates(["user_id", "timestamp"])
    cut = satf.split(events, test="2weeks")
    run = satf.evaluate(cut, [name], at=10)[name]
    past, future = cut.train, cut.test
    if cut.valid is not None:
        past = pd.concat([past, cut.valid])
    estimator = SatfEstimator(name).fit(past)
    assert estimator.score(future) == pytest.approx(run.metrics["NDCG@10"], abs=1e-9)
    rows = pd.concat([past, future])
    fold = np.r_[np.full(len(past), -1), np.zeros(len(future), dtype=int)]
    assert cross_val_score(SatfEstimator(name), rows, cv=PredefinedSplit(fold))[0] == pytest.approx(run.metrics["NDCG@10"], abs=1e-9)


def test_parameters(events: Any) -> None:
    estimator = SatfEstimator("ease", keys={"regularization": 5.0}, seed=2)
    assert estimator.get_params()["keys__regularization"] == 5.0
    assert estimator.get_params(deep=False)["keys"] == {"regularization": 5.0}
    other = clone(estimator).set_params(keys__regularization=6.0, k=3)
    assert (other.keys, other.k, estimator.keys) == ({"regularization": 6.0}, 3, {"regularization": 5.0})
    assert other.fit(events).model_.keys["regularization"] == 6.0
    with pytest.raises(ValueError, match="no_such"):
        estimator.set_params(no_such=1)
    with pytest.raises(satf.ConfigError, match="no_such_key"):
        SatfEstimator(keys={"no_such_key": 1}).fit(events)


def test_pickled_it_says_the_same(events: Any) -> None:
    estimator = SatfEstimator().fit(events[:-200])
    other = pickle.loads(pickle.dumps(estimator))
    assert other.score(events[-200:]) == estimator.score(events[-200:])
    assert other.recommend().equals(estimator.recommend())


def test_arrays_are_users_items_and_times() -> None:
    rng = np.random.default_rng(1)
    users, items = rng.integers(0, 20, 400), rng.integers(0, 9, 400)
    rows = np.column_stack([users, items, np.arange(400)])
    estimator = SatfEstimator("transitions").fit(rows)
    assert estimator.model_.num_items == 9 and estimator.n_features_in_ == 3
    text = SatfEstimator("transitions").fit(np.column_stack([users.astype(str), [f"item {item}" for item in items]]))
    assert text.model_.items[0] == "item 0"
    with pytest.raises(ValueError, match="whole number"):
        SatfEstimator().fit(rows + 0.5)
    with pytest.raises(ValueError, match="2 features, but SatfEstimator is expecting 3"):
        estimator.score(rows[:, :2])
    with pytest.raises(NotFittedError):
        SatfEstimator().score(rows)


def test_lists_for_users_and_for_histories(events: Any) -> None:
    estimator = SatfEstimator().fit(events)
    user = events["user_id"].iloc[0]
    assert estimator.recommend([user], 3)["user_id"].tolist() == [user] * 3
    assert len(estimator.recommend()) == 10 * events["user_id"].nunique()
    own = estimator.model_.recommend([["laptop"]], 4)
    assert estimator.recommend([["laptop"]], 4).equals(own)


def test_nothing_to_score_is_not_a_number(events: Any) -> None:
    unknown = pd.DataFrame({"user_id": ["nobody"], "item_id": ["nothing"], "timestamp": events["timestamp"].iloc[-1:].to_numpy()})
    assert np.isnan(SatfEstimator("mp").fit(events).score(unknown))
