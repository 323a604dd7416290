"""Splits, evaluations, comparisons and searches: those of the command line, and models of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import satf_json, satf_program

import satf

pandas = pytest.importorskip("pandas")


class Popular:
    """The most popular items, by hand."""

    def fit(self, train: satf.TrainingSet) -> None:
        self.counts = np.bincount(train.indices, minlength=train.num_items)

    def score(self, history: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return self.counts


class Popularities(Popular):
    """The same for many histories at once."""

    name = "popularities"

    def score_batch(self, histories: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        return np.tile(self.counts, (len(histories), 1))


class Next:
    """How often an item came right after the newest one, by hand: `transitions` with a window of 1, without what it does beyond that."""

    def fit(self, train: satf.TrainingSet) -> None:
        self.counts = np.zeros((train.num_items, train.num_items))
        for history in train.histories():
            np.add.at(self.counts, (history[:-1], history[1:]), 1)

    def score(self, history: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return self.counts[history[-1]]


@pytest.fixture(scope="module")
def results(shop: Any) -> satf.Results:
    models = ["d-satf", "mp", ("pure-svd", {"rank": 8}), Popular(), Popularities(), Next()]
    return satf.evaluate(shop, models, test="1month", valid="1month", at=[5, 10])


def test_scores_are_those_of_the_command_line(results: satf.Results, shop_csv: Path) -> None:
    told = satf_json("evaluate", shop_csv, "--model", "d-satf,mp,pure-svd", "--set", "pure-svd.rank=8", "--test", "1month", "--valid", "1month", "--at", "5,10")
    for run in told["runs"]:
        report = results[run["model"]].report
        assert report["metrics"] == run["metrics"] and report["configuration"] == run["configuration"]
        assert report["events"] == run["events"]
    assert results.protocol == told["runs"][0]["protocol"]


def test_a_model_of_ones_own_is_scored_like_all_others(results: satf.Results) -> None:
    for own in ("Popular", "popularities"):
        assert results[own].metrics == results["mp"].metrics
        assert results[own].per_event().equals(results["mp"].per_event())
    assert results["Next"].metrics["NDCG@10"] > results["mp"].metrics["NDCG@10"]
    assert results["Next"].report["train_seconds"] > 0


def test_results_show_themselves(results: satf.Results) -> None:
    frame = results.to_frame()
    assert list(frame["model"]) == ["d-satf", "mp", "pure-svd", "Popular", "popularities", "Next"]
    assert {"NDCG@10", "NDCG@10 stderr", "HR@5", "COV@10", "train_seconds"} <= set(frame.columns)
    assert "d-satf" in repr(results) and "±" in repr(results)
    assert results._repr_html_().count("<tr>") == 7
    assert len(results) == 6 and "Next" in results
    assert results.per_event("Next", output="polars").columns[:5] == ["user_id", "item_id", "timestamp", "history_length", "rank"]
    with pytest.raises(satf.ConfigError, match="which model"):
        results.per_event()


def test_results_event_by_event_make_the_means(results: satf.Results) -> None:
    frame = results.per_event("d-satf")
    assert len(frame) == results.counts["scored"]
    for metric in ("NDCG@10", "HR@5", "MRR@10"):
        assert frame[metric].mean() == pytest.approx(results["d-satf"].metrics[metric], abs=1e-12)


def test_comparisons_are_those_of_the_command_line(results: satf.Results, tmp_path: Path) -> None:
    first, second = tmp_path / "mp.parquet", tmp_path / "d-satf.csv"
    results["mp"].save_per_event(first)
    results["d-satf"].save_per_event(second)
    told = satf_json("compare", first, second)["comparisons"][0]
    for one, other in (
        (results["mp"], results["d-satf"]),
        (first, second),
        (results.per_event("mp"), results.per_event("d-satf")),
        (results.per_event("mp", output="polars"), results.per_event("d-satf", output="arrow")),
    ):
        comparison = satf.compare(one, other)
        assert comparison.metrics == told["metrics"] and comparison.events == told["events"]
    shown = results.compare("mp", "d-satf", "NDCG@10")
    assert list(shown.metrics) == ["NDCG@10"] and shown.p_values["NDCG@10"] < 0.01
    assert "p = " in repr(shown) and "d-satf" in shown._repr_html_()
    assert results.compare("mp", "Popular").p_values["HR@10"] == 1.0
    with pytest.raises(satf.ConfigError, match="NDCG@5"):
        satf.compare(first, second, "NDCG@7")


def test_a_split_gives_what_is_learned_from_and_what_is_asked(shop: Any) -> None:
    split = satf.split(shop, test="1month")
    assert split.valid is None
    assert len(split.train) + len(split.test) == len(shop)
    assert split.train["timestamp"].max() <= split.test["timestamp"].min()
    events, histories = split.events, split.histories
    assert len(events) == len(histories) == split.counts["scored"]
    assert [len(history) for history in histories] == list(events["history_length"])
    # A history is what the user did before, in the training set and in the test set.
    row = events.iloc[len(events) // 2]
    own = shop[(shop["user_id"] == row["user_id"]) & (shop["timestamp"] < row["timestamp"])].sort_values("timestamp")
    known = set(split.train["item_id"])
    assert histories[len(events) // 2] == [item for item in own["item_id"] if item in known]
    parts = satf.split(shop, test="1month", valid="1month")
    assert len(parts.train) + len(parts.valid) == len(split.train)
    assert "to predict" in repr(split)


def test_a_split_is_evaluated_as_its_log(shop: Any) -> None:
    split = satf.split(shop, test="1month")
    on_split = satf.evaluate(split, ["d-satf", "transitions"])
    on_log = satf.evaluate(shop, ["d-satf", "transitions"], test="1month")
    for label in on_log:
        assert on_split[label].metrics == on_log[label].metrics
    # By hand, with lists for every event.
    model = satf.fit(split.train, "transitions")
    lists = model.recommend(split.histories, 10, output="table")
    target = list(split.events["item_id"])
    hits = sum(item == target[event] for event, item in zip(lists.column("user_id"), lists.column("item_id")))
    assert hits / len(target) == pytest.approx(on_log["transitions"].metrics["HR@10"], abs=1e-12)


def test_a_model_that_was_fitted_before_is_scored_as_it_is(shop: Any, tmp_path: Path) -> None:
    split = satf.split(shop, test="1month")
    model = satf.fit(split.train, "transitions", ties="shuffle")
    path = tmp_path / "fitted.satf"
    model.save(path)
    found = satf.evaluate(split, {"named": "transitions", "model": model, "path": path, "text": str(path)})
    assert found["named"].metrics == found["model"].metrics == found["path"].metrics == found["text"].metrics
    whole = satf.fit(shop, "transitions")
    with pytest.warns(satf.SatfWarning, match="may have seen what it predicts"):
        assert satf.evaluate(split, whole)["transitions"].metrics["NDCG@10"] > 0
    few = satf.fit(split.train.head(200), "mp")
    with pytest.warns(satf.SatfWarning) as told:
        satf.evaluate(split, {"few": few})
    assert any("does not know" in str(warning.message) for warning in told)


class Broken:
    def __init__(self, scores: Any) -> None:
        self.scores = scores

    def score(self, history: Any) -> Any:
        if isinstance(self.scores, Exception):
            raise self.scores
        return self.scores


def test_a_broken_model_of_ones_own_is_told(shop: Any) -> None:
    split = satf.split(shop, test="1month")
    for broken, error, message in [
        (Broken(ZeroDivisionError("oh no")), ZeroDivisionError, "oh no"),
        (Broken([1.0, 2.0]), satf.ExperimentError, "Broken: expected 1 x .* found an array of shape"),
        (Broken(np.full(split.training_set.num_items, np.nan)), satf.ExperimentError, "NaN"),
        (Broken("scores"), ValueError, "could not convert"),
        (Broken, satf.ConfigError, "is a class"),
        (object(), satf.ConfigError, "is not a model"),
        ("d-saft", satf.ConfigError, "did you mean"),
    ]:
        with pytest.raises(error, match=message):
            satf.evaluate(split, [broken])
    # Infinities only say that an item comes first or last.
    endless = np.zeros(split.training_set.num_items)
    endless[0], endless[1] = np.inf, -np.inf
    assert satf.evaluate(split, Broken(endless))["Broken"].metrics["NDCG@10"] >= 0


def test_offsets_that_are_not_given_are_told(shop: Any) -> None:
    with pytest.warns(satf.SatfWarning, match="no offsets given"):
        satf.evaluate(shop, "mp")
    with pytest.warns(satf.SatfWarning, match="leaks the future"):
        found = satf.evaluate(shop, "mp", split="leave-one-out", ties="file")
    assert found.protocol["leaks_future"]
    for options, message in [({"test": "3wks"}, "3wks"), ({"test": "9years"}, "reach back"), ({"ties": "none", "test": "1month"}, "ties|variant")]:
        with pytest.raises(satf.SatfError, match=message):
            satf.evaluate(shop, "mp", **options)


def test_early_stopping_is_that_of_the_command_line(shop: Any, shop_csv: Path) -> None:
    keys = {"item_rank": 8, "num_iters": 4}
    with pytest.warns(satf.SatfWarning, match="the last of num_iters = 4 was the best"):
        found = satf.evaluate(shop, ("la-satf", keys), test="1month", valid="1month", early_stopping="NDCG@10")
    words = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
    told = satf_json("evaluate", shop_csv, "--model", "la-satf", *words, "--test", "1month", "--valid", "1month", "--early-stopping", "NDCG@10")
    report = found["la-satf"].report
    assert report["early_stopping"] == told["runs"][0]["early_stopping"]
    assert report["metrics"] == told["runs"][0]["metrics"]


def test_a_search_is_that_of_the_command_line(shop: Any, shop_csv: Path, tmp_path: Path) -> None:
    space = tmp_path / "space.toml"
    space.write_text("keys.window = [1, 2, 3]\nkeys.reverse = [0.0, 0.5]\n")
    told = satf_json("tune", shop_csv, "--model", "transitions", "--space", space, "--sampler", "exhaustive", "--test", "1month", "--valid", "1month", "--study", tmp_path / "study")
    study = satf.tune(shop, "transitions", space={"window": [1, 2, 3], "reverse": [0.0, 0.5]}, sampler="exhaustive", test="1month", valid="1month")
    assert study.result["result"]["best"] == told["result"]["best"]
    assert study.result["result"]["test"] == told["result"]["test"]
    assert len(study.trials()) == 6 and study.trials()["value"].max() == study.best_value
    assert study.fit(shop).keys["window"] == study.best_keys["window"]
    assert "transitions" in repr(study)
    # A study in a folder goes on where it stopped.
    options = {"space": {"window": [1, 2, 3, 4]}, "seed": 1, "test": "1month", "valid": "1month", "study": tmp_path / "own"}
    first = satf.tune(shop, "transitions", trials=2, **options)
    rest = satf.tune(shop, "transitions", trials=4, **options)
    assert rest.result["trials"][:2] == first.result["trials"]
    with pytest.raises(satf.TuneError):
        satf.tune(shop, "transitions", trials=2, **{**options, "seed": 2})


def test_whether_order_matters_is_what_the_command_line_says(shop: Any, shop_csv: Path) -> None:
    found = satf.order_matters(shop, test="1month", repetitions=1)
    told = json.loads(satf_program("stats", shop_csv, "--order-matters", "--test", "1month", "--repetitions", 1, "--json"))["order"]
    assert found.verdict == told["verdict"] and bool(found)
    assert "order" in repr(found)
    assert {"model", "real", "shuffled", "p_value"} <= set(found.to_frame().columns)


def test_pictures_are_drawn(results: satf.Results, model: satf.Model) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = results.plot("HR@10")
    assert [label.get_text() for label in axes.get_yticklabels()] == list(results)
    assert "lag" in model.plot_attention().get_xlabel()
    with pytest.raises(satf.ConfigError, match="HR@7"):
        results.plot("HR@7")
