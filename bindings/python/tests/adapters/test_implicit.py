"""The adapter to implicit, with the real package."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("implicit")

from implicit.evaluation import ranking_metrics_at_k
from scipy.sparse import csr_matrix

import satf
from satf.adapters.implicit import SatfRecommender

LAST = -np.finfo(np.float32).max


@pytest.fixture(scope="module")
def events() -> Any:
    """Users, items (as numbers) and times of the made-up shop, each pair once."""
    table = satf.generate(users=200, output="table")
    users = np.unique(table.column("user_id"), return_inverse=True)[1].ravel()
    items = np.unique(table.column("item_id"), return_inverse=True)[1].ravel()
    times = np.asarray(table.column("timestamp")) // 1_000_000
    first = np.unique(users * (items.max() + 1) + items, return_index=True)[1]
    return users[first], items[first], times[first]


@pytest.fixture(scope="module")
def by_time(events: Any) -> csr_matrix:
    users, items, times = events
    return csr_matrix((times.astype(np.float64), (users, items)))


@pytest.fixture(scope="module")
def liked(by_time: csr_matrix) -> csr_matrix:
    return csr_matrix((np.ones_like(by_time.data), by_time.indices, by_time.indptr), shape=by_time.shape)


def fitted(matrix: csr_matrix, *arguments: Any, **options: Any) -> SatfRecommender:
    model = SatfRecommender(*arguments, **options)
    model.fit(matrix, show_progress=False)
    return model


def test_with_times_it_is_the_model_of_the_events(events: Any, by_time: csr_matrix) -> None:
    users, items, times = events
    log = satf.read_log({"user_id": users, "item_id": items, "timestamp": times}, time_unit="seconds")
    own = satf.fit(log, ties="basket")
    model = fitted(by_time, order="time")
    asked = np.arange(40)
    ids, scores = model.recommend(asked, by_time[asked], N=5)
    table = own.recommend(asked, 5, log=log, output="table")
    assert np.array_equal(ids.ravel(), table.column("item_id"))
    assert np.array_equal(scores.ravel().view(np.uint32), np.asarray(table.column("score")).view(np.uint32))


def test_without_order_the_order_of_columns_says_nothing(liked: csr_matrix) -> None:
    # Users like two neighbours of a row of items. A model that took columns for an order would only ever go right.
    rng = np.random.default_rng(3)
    left = rng.integers(0, 99, 2000)
    pairs = csr_matrix((np.ones(4000), (np.repeat(np.arange(2000), 2), np.column_stack([left, left + 1]).ravel())), shape=(2000, 100))
    model = fitted(pairs, "transitions")
    middle = csr_matrix(np.eye(100)[1:99])
    ids, _ = model.recommend(np.arange(98), middle, N=2)
    assert all(set(found) == {item - 1, item + 1} for item, found in zip(range(1, 99), ids))
    assert 0.3 < np.mean(ids[:, 0] > np.arange(1, 99)) < 0.7
    # What is asked is not taken for an order either.
    asked = csr_matrix(np.eye(100)[20:80] + np.eye(100)[21:81])
    best = model.recommend(np.arange(60), asked, N=1)[0][:, 0]
    assert 0.2 < np.mean(best > np.arange(20, 80)) < 0.8
    # A model that reads no order says the same whatever columns are called.
    turned = np.arange(liked.shape[1])[::-1]
    model, other = fitted(liked, "ease"), fitted(csr_matrix(liked[:, turned]), "ease")
    for user in range(20):
        ids, scores = model.recommend(user, liked[user], N=5)
        back, same = other.recommend(user, csr_matrix(liked[user][:, turned]), N=5)
        assert scores == pytest.approx(same, rel=1e-3)


def test_ranks_order_histories_and_mean_nothing_else(by_time: csr_matrix) -> None:
    ranks = by_time.copy()
    for user in range(ranks.shape[0]):
        own = slice(ranks.indptr[user], ranks.indptr[user + 1])
        ranks.data[own] = 1 + np.argsort(np.argsort(by_time.data[own], kind="stable"))
    backwards = ranks.copy()
    backwards.data = 1000 - ranks.data
    asked = np.arange(100)
    lists = [fitted(each, "transitions", order="rank").recommend(asked, each[asked])[0] for each in (ranks, backwards)]
    doubled = ranks * 2
    again = fitted(doubled, "transitions", order="rank").recommend(asked, doubled[asked])[0]
    assert np.array_equal(lists[0], again)
    assert not np.array_equal(lists[0], lists[1])


def test_keys_reach_the_model_and_faults_are_told(liked: csr_matrix) -> None:
    assert fitted(liked, "ease", regularization=7.0).fitted.keys["regularization"] == 7.0  # type: ignore[union-attr]
    with pytest.raises(satf.ConfigError, match="no_such_key"):
        fitted(liked, no_such_key=1)
    with pytest.raises(ValueError, match="order='newest'"):
        SatfRecommender(order="newest")
    with pytest.raises(ValueError, match="not fitted"):
        SatfRecommender().recommend(0, liked[0])
    with pytest.raises(ValueError, match="dtype=np.float64"):
        fitted(csr_matrix(np.full((2, 2), 1.6e9, dtype=np.float32)), order="time")
    with pytest.raises(ValueError, match="finite"):
        fitted(csr_matrix(np.array([[1.0, np.nan], [1.0, 1.0]])))
    with pytest.raises(NotImplementedError, match="similar_users"):
        fitted(liked).similar_users(0)


def test_a_shape_that_does_not_fit_is_refused(liked: csr_matrix) -> None:
    model = fitted(liked)
    with pytest.raises(ValueError, match="3 rows for 2 users"):
        model.recommend([0, 1], liked[[0, 1, 2]])
    with pytest.raises(ValueError, match="columns"):
        model.recommend(0, liked[0, :-1])
    with pytest.raises(ValueError, match="both"):
        model.recommend(0, liked[0], items=[1], filter_items=[2])
    with pytest.raises(IndexError, match="item 100000"):
        model.similar_items(100_000)


def test_filters(liked: csr_matrix) -> None:
    model = fitted(liked)
    seen = set(liked[3].indices.tolist())
    ids, scores = model.recommend(3, liked[3], N=10_000)
    assert not seen & set(ids.tolist()) and len(ids) == liked.shape[1] - len(seen)
    assert np.all(np.diff(scores) <= 0)
    without, _ = model.recommend(3, liked[3], N=4, filter_items=ids[:2])
    assert without.tolist() == ids[2:6].tolist()
    some = [*ids[:3].tolist(), *sorted(seen)[:2]]
    ranked, scores = model.recommend(3, liked[3], items=some)
    assert ranked.tolist() == some and (scores[3:] == LAST).all() and (scores[:3] > LAST).all()
    with_seen, _ = model.recommend(3, liked[3], N=10_000, filter_already_liked_items=False)
    assert len(with_seen) == liked.shape[1]


def test_a_user_without_anything_gets_nothing_and_new_users_need_no_fit(liked: csr_matrix) -> None:
    model = fitted(liked)
    empty = csr_matrix((1, liked.shape[1]))
    assert len(model.recommend(0, empty)[0]) == 0
    both = csr_matrix(np.vstack([empty.toarray(), liked[5].toarray()]))
    ids, scores = model.recommend([100_000, 100_001], both, N=3)
    assert ids[0].tolist() == [-1, -1, -1] and (scores[0] == LAST).all()
    assert ids[1].tolist() == model.recommend(5, liked[5], N=3)[0].tolist()


def test_similar_items_are_those_of_the_model(liked: csr_matrix) -> None:
    model = fitted(liked)
    ids, scores = model.similar_items(2, N=5)
    table = model.fitted.similar(2, 4, output="table")  # type: ignore[union-attr]
    assert ids.tolist() == [2, *table.column("item_id")] and scores[0] == 1.0
    assert scores[1:].tolist() == list(table.column("similarity"))
    batch, _ = model.similar_items([2, 3, 2], N=5)
    assert batch[0].tolist() == batch[2].tolist() == ids.tolist()


def test_saved_loaded_and_pickled_it_says_the_same(by_time: csr_matrix, tmp_path: Any) -> None:
    model = fitted(by_time, "ease", order="time", regularization=20.0)
    model.save(str(tmp_path / "model"))
    memory = io.BytesIO()
    model.save(memory)
    memory.seek(0)
    asked = np.arange(30)
    expected = model.recommend(asked, by_time[asked])
    for other in (SatfRecommender.load(str(tmp_path / "model")), SatfRecommender.load(memory), pickle.loads(pickle.dumps(model))):
        assert (other.order, other.keys, other.model) == ("time", {"regularization": 20.0}, "ease")
        ids, scores = other.recommend(asked, by_time[asked])
        assert np.array_equal(ids, expected[0]) and np.array_equal(scores, expected[1])


def test_the_evaluation_of_implicit_takes_it(events: Any, liked: csr_matrix) -> None:
    users, items, times = events
    newest = times > np.quantile(times, 0.8)
    past = csr_matrix((np.ones((~newest).sum()), (users[~newest], items[~newest])), shape=liked.shape)
    future = csr_matrix((np.ones(newest.sum()), (users[newest], items[newest])), shape=liked.shape)
    found = ranking_metrics_at_k(fitted(past), past, future, K=5, show_progress=False)
    popular = ranking_metrics_at_k(fitted(past, "mp"), past, future, K=5, show_progress=False)
    assert found["ndcg"] > popular["ndcg"] > 0
