"""The scorer for LensKit, with the real package."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("lenskit")

import pandas as pd
from lenskit import batch
from lenskit.data import ItemList, RecQuery, from_interactions_df
from lenskit.operations import recommend, score
from lenskit.pipeline import topn_pipeline
from lenskit.training import TrainingOptions

import satf
from satf.adapters.lenskit import SatfConfig, SatfScorer


@pytest.fixture(scope="module")
def events() -> Any:
    shop = satf.generate(users=150, output="pandas").drop_duplicates(["user_id", "item_id"])
    times = pd.to_datetime(shop["timestamp"]).dt.tz_localize(None)
    # One event per user and time, so that nothing depends on how ties are broken.
    return shop.assign(timestamp=times).drop_duplicates(["user_id", "timestamp"])


@pytest.fixture(scope="module")
def dataset(events: Any) -> Any:
    return from_interactions_df(events)


@pytest.fixture(scope="module")
def pipeline(dataset: Any) -> Any:
    pipeline = topn_pipeline(SatfScorer(), n=5)
    pipeline.train(dataset)
    return pipeline


def history(**items: Any) -> Any:
    """A query of items, whatever this version of LensKit calls them."""
    names = RecQuery.__dataclass_fields__
    return RecQuery(**({"history_items": items["items"]} if "history_items" in names else {"user_items": items["items"]}))


def test_lists_are_those_of_the_model(events: Any, pipeline: Any) -> None:
    own = satf.fit(events)
    for user in events["user_id"].unique()[:25]:
        found = recommend(pipeline, user, 5)
        expected = own.recommend([user], 5, output="table")
        assert list(found.ids()) == expected.column("item_id"), user
        assert np.array_equal(found.scores(), expected.column("score"))


def test_a_history_needs_no_user(events: Any, pipeline: Any) -> None:
    own = satf.fit(events)
    ordered = ItemList(["laptop", "laptop sleeve"], ordered=True)
    basket = ItemList(["laptop", "laptop sleeve"])
    candidates = ItemList(own.items)
    for items, asked in ((ordered, ["laptop", "laptop sleeve"]), (basket, [["laptop", "laptop sleeve"]])):
        found = score(pipeline, history(items=items), candidates)
        assert np.array_equal(found.scores(), own.score([asked])[0])


def test_times_of_a_history_order_it(events: Any, pipeline: Any) -> None:
    own = satf.fit(events)
    items = ItemList(["laptop", "tent", "laptop sleeve"], timestamp=np.array([30, 10, 20]))
    found = score(pipeline, history(items=items), ItemList(own.items))
    assert np.array_equal(found.scores(), own.score([["tent", "laptop sleeve", "laptop"]])[0])


def test_what_is_not_known_has_no_score(pipeline: Any) -> None:
    items = ItemList(["laptop", "no such item"])
    scores = score(pipeline, history(items=ItemList(["tent"])), items).scores()
    assert np.isfinite(scores[0]) and np.isnan(scores[1])
    assert np.isnan(score(pipeline, history(items=ItemList(["no such item"])), items).scores()).all()
    assert np.isnan(score(pipeline, RecQuery(), items).scores()).all()


def test_batches_and_pickles(events: Any, dataset: Any, pipeline: Any) -> None:
    users = events["user_id"].unique()[:20].tolist()
    lists = batch.recommend(pipeline, users, 5, n_jobs=1)
    scorer = pickle.loads(pickle.dumps(pipeline.component("scorer")))
    again = topn_pipeline(scorer, n=5)
    again.train(dataset, TrainingOptions(retrain=False))
    for user in users:
        assert list(recommend(again, user, 5).ids()) == list(lists.lookup(user_id=user).ids())


def test_without_timestamps_histories_are_baskets(events: Any) -> None:
    dataset = from_interactions_df(events[["user_id", "item_id"]])
    pipeline = topn_pipeline(SatfScorer(model="ease"), n=5)
    pipeline.train(dataset)
    user = events["user_id"].iloc[0]
    own = satf.fit(events.assign(timestamp=0)[["user_id", "item_id", "timestamp"]], "ease", ties="basket")
    assert list(recommend(pipeline, user, 5).ids()) == own.recommend([user], 5, output="table").column("item_id")


def test_configurations(dataset: Any) -> None:
    scorer = SatfScorer(SatfConfig(model="ease", keys={"regularization": 40.0}))
    scorer.train(dataset, TrainingOptions())
    assert scorer.fitted is not None and scorer.fitted.keys["regularization"] == 40.0
    assert SatfScorer(SatfScorer.validate_config(scorer.dump_config())).config == scorer.config
    with pytest.raises(ValueError, match="no_such_option"):
        SatfScorer(no_such_option=1)
    with pytest.raises(satf.ConfigError, match="no_such_key"):
        SatfScorer(keys={"no_such_key": 1}).train(dataset, TrainingOptions())
    with pytest.raises(satf.RecommendError, match="not trained"):
        SatfScorer()(RecQuery(), ItemList(["laptop"]))
