"""The adapter to RecTools, with the real package."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rectools")

import pandas as pd
from rectools import Columns
from rectools.dataset import Dataset
from rectools.exceptions import NotFittedError
from rectools.metrics import HitRate
from rectools.model_selection import TimeRangeSplitter, cross_validate
from rectools.models import PopularModel, model_from_config
from rectools.models.serialization import load_model

import satf
from satf.adapters.rectools import SatfModel


@pytest.fixture(scope="module")
def interactions() -> Any:
    shop = satf.generate(users=200, output="pandas")
    frame = pd.DataFrame({Columns.User: shop["user_id"], Columns.Item: shop["item_id"], Columns.Weight: 1})
    frame[Columns.Datetime] = pd.to_datetime(shop["timestamp"]).dt.tz_localize(None)
    return frame.drop_duplicates([Columns.User, Columns.Item])


@pytest.fixture(scope="module")
def dataset(interactions: Any) -> Any:
    return Dataset.construct(interactions)


@pytest.fixture(scope="module")
def model(dataset: Any) -> SatfModel:
    return SatfModel().fit(dataset)


def test_it_is_the_model_of_the_interactions(interactions: Any, dataset: Any, model: SatfModel) -> None:
    own = satf.fit(interactions)
    users = interactions[Columns.User].unique()[:30]
    found = model.recommend(users, dataset, k=5, filter_viewed=True)
    assert list(found.columns) == [Columns.User, Columns.Item, Columns.Score, Columns.Rank]
    expected = own.recommend(users, 5, log=interactions)
    assert found[Columns.Item].tolist() == expected["item_id"].tolist()
    assert np.array_equal(found[Columns.Score].to_numpy(), expected["score"].to_numpy())
    assert found[Columns.User].tolist() == [user for user in users for _ in range(5)]
    assert model.fitted is not None and model.fitted.to_bytes() == own.to_bytes()


def test_another_dataset_may_number_items_otherwise(interactions: Any, dataset: Any, model: SatfModel) -> None:
    users = interactions[Columns.User].unique()[:10]
    few = Dataset.construct(interactions[interactions[Columns.User].isin(users)].sort_values(Columns.Datetime, ascending=False, kind="stable"))
    items = few.item_id_map.external_ids
    assert 20 < len(items) < dataset.item_id_map.size
    here = model.recommend(users, dataset, k=3, filter_viewed=True, items_to_recommend=items)
    pd.testing.assert_frame_equal(model.recommend(users, few, k=3, filter_viewed=True), here)
    alike = model.recommend_to_items(items[:5], dataset, k=3, items_to_recommend=items)
    pd.testing.assert_frame_equal(model.recommend_to_items(items[:5], few, k=3), alike)


def test_filters(dataset: Any, interactions: Any, model: SatfModel) -> None:
    user = interactions[Columns.User].iloc[0]
    seen = set(interactions.loc[interactions[Columns.User] == user, Columns.Item])
    everything = dataset.item_id_map.size
    viewed = model.recommend([user], dataset, k=everything, filter_viewed=False)
    assert set(viewed[Columns.Item]) == set(dataset.item_id_map.external_ids)
    unseen = model.recommend([user], dataset, k=everything, filter_viewed=True)
    assert not seen & set(unseen[Columns.Item])
    only = unseen[Columns.Item].tolist()[3:6]
    chosen = model.recommend([user], dataset, k=10, filter_viewed=True, items_to_recommend=[*only, "no such item"])
    assert chosen[Columns.Item].tolist() == only
    assert Columns.Rank not in model.recommend([user], dataset, k=1, filter_viewed=True, add_rank_col=False)
    assert model.recommend([user], dataset, k=5, filter_viewed=True, items_to_recommend=["no such item"]).empty


def test_warm_and_cold_users_get_what_is_popular(interactions: Any) -> None:
    features = pd.DataFrame({"id": ["warm one"], "value": ["x"], "feature": ["colour"]})
    dataset = Dataset.construct(interactions, user_features_df=features, cat_user_features=["colour"])
    model = SatfModel("ease").fit(dataset)
    hot = interactions[Columns.User].iloc[0]
    found = model.recommend([hot, "warm one", "cold one"], dataset, k=4, filter_viewed=True)
    assert found.groupby(Columns.User).size().to_dict() == {hot: 4, "warm one": 4, "cold one": 4}
    popular = interactions[Columns.Item].value_counts()
    for user in ("warm one", "cold one"):
        rows = found[found[Columns.User] == user]
        assert [popular[item] for item in rows[Columns.Item]] == popular.tolist()[:4] == rows[Columns.Score].tolist()


def test_a_hot_user_of_unknown_items_gets_what_is_popular(interactions: Any, dataset: Any, model: SatfModel) -> None:
    new = pd.DataFrame({Columns.User: ["ann", "ann"], Columns.Item: ["new 1", "new 2"], Columns.Weight: 1})
    new[Columns.Datetime] = interactions[Columns.Datetime].max()
    later = Dataset.construct(pd.concat([interactions, new]))
    found = model.recommend(["ann", interactions[Columns.User].iloc[0]], later, k=3, filter_viewed=True)
    assert len(found) == 6 and not found[Columns.Item].str.startswith("new").any()
    top = interactions[Columns.Item].value_counts().iloc[0]
    assert found.loc[found[Columns.User] == "ann", Columns.Score].iloc[0] == top


def test_items_like_items(dataset: Any, model: SatfModel) -> None:
    items = dataset.item_id_map.external_ids[:100]
    found = model.recommend_to_items(items, dataset, k=3)
    assert (found[Columns.TargetItem] != found[Columns.Item]).all()
    own = model.fitted.similar(items[0], 3, output="table")  # type: ignore[union-attr]
    assert found.loc[found[Columns.TargetItem] == items[0], Columns.Item].tolist() == own.column("item_id")
    itself = model.recommend_to_items(items[:1], dataset, k=2, filter_itself=False)
    assert itself[Columns.Item].iloc[0] == items[0] and itself[Columns.Score].iloc[0] == 1.0
    only = model.recommend_to_items(items[:1], dataset, k=5, items_to_recommend=own.column("item_id")[1:])
    assert only[Columns.Item].tolist() == own.column("item_id")[1:]


def test_configurations(dataset: Any, tmp_path: Any) -> None:
    model = SatfModel("ease", {"regularization": 30.0}, ties="file", seed=3, threads=1)
    config = model.get_config(simple_types=True)
    assert config["cls"] == "satf.adapters.rectools.SatfModel" and config["keys"] == {"regularization": 30.0}
    again = model_from_config(config)
    assert isinstance(again, SatfModel) and again.get_config() == model.get_config()
    assert SatfModel.from_params(model.get_params()).get_config() == model.get_config()
    assert model.get_params()["keys.regularization"] == 30.0
    with pytest.raises(NotFittedError):
        model.recommend([1], dataset, k=1, filter_viewed=True)
    with pytest.raises(satf.ConfigError, match="no_such_key"):
        SatfModel(keys={"no_such_key": 1}).fit(dataset)


def test_saved_loaded_and_copied_it_says_the_same(dataset: Any, model: SatfModel, tmp_path: Any) -> None:
    users = dataset.user_id_map.external_ids
    expected = model.recommend(users, dataset, k=5, filter_viewed=True)
    model.save(tmp_path / "model.pkl")
    for other in (load_model(tmp_path / "model.pkl"), SatfModel.load(tmp_path / "model.pkl"), deepcopy(model)):
        pd.testing.assert_frame_equal(other.recommend(users, dataset, k=5, filter_viewed=True), expected)


def test_ids_that_a_model_cannot_hold_are_refused(interactions: Any) -> None:
    numbers = pd.factorize(interactions[Columns.Item])[0]
    with pytest.raises(TypeError, match="expected integers or strings"):
        SatfModel().fit(Dataset.construct(interactions.assign(**{Columns.Item: numbers + 0.5})))
    SatfModel("mp").fit(Dataset.construct(interactions.assign(**{Columns.Item: numbers})))


def test_cross_validate_takes_it(dataset: Any) -> None:
    found = cross_validate(
        dataset,
        TimeRangeSplitter("14D", n_splits=2, filter_cold_users=False),
        {"hits": HitRate(5)},
        {"satf": SatfModel(), "popular": PopularModel()},
        k=5,
        filter_viewed=True,
    )
    hits = pd.DataFrame(found["metrics"]).groupby("model")["hits"].mean()
    assert hits["satf"] > hits["popular"] > 0
