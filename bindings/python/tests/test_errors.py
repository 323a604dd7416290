"""What is wrong is a clear exception, never an abort."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import satf

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")

ROWS = [("ann", "tent", 10), ("ann", "stove", 20), ("bob", "tent", 30), ("bob", "mug", 40)]


def frame(**changes: Any) -> Any:
    columns = {"user_id": [1, 1, 2], "item_id": ["a", "b", "a"], "timestamp": [1, 2, 3]}
    return pandas.DataFrame({**columns, **changes})


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (frame(user_id=[1.0, None, 2.0]), "column `user_id` is of type float64, expected integers or strings; pandas makes floats"),
        (frame(user_id=[1.5, 2.5, 3.5]), "expected integers or strings"),
        (frame(item_id=["a", None, "b"]), "the frame, row 2, column .item_id.: .*null"),
        (frame(timestamp=[1.0, np.nan, 3.0]), "the frame, row 2, column .timestamp.: .*null"),
        (frame(timestamp=pandas.to_datetime(["2024-01-01", None, "2024-01-02"])), "the frame, row 2, column .timestamp.: .*null"),
        (frame(item_id=["a", 7, "b"]), "column `item_id`"),
        (frame(user_id=[True, False, True]), "column `user_id` is of type"),
        (frame(item_id=[["a"], ["b"], ["c"]]), "column `item_id` is of type"),
        (frame().iloc[:0], "the frame has no rows"),
        (frame()[["user_id", "timestamp"]], "item"),
        (pandas.DataFrame(), "user"),
        ({"user_id": [1, 2], "item_id": [1], "timestamp": [1, 2]}, "the column user_id has 2 values and item_id has 1"),
        ({"user_id": [1, "b"], "item_id": [1, 2], "timestamp": [1, 2]}, "row 2, column .user_id.: expected an integer or a string"),
        ({"user_id": ["a", 1], "item_id": [1, 2], "timestamp": [1, 2]}, "row 2, column .user_id.: expected a string"),
        ({"user_id": [2**70, 1], "item_id": [1, 2], "timestamp": [1, 2]}, "an integer of 64 bits"),
        ({"user_id": np.array([True, False]), "item_id": [1, 2], "timestamp": [1, 2]}, "of type bool"),
        ({"user_id": np.array([1 + 2j]), "item_id": [1], "timestamp": [1]}, "of type complex128"),
        ({"user_id": np.array([1.5, 2.0]), "item_id": [1, 2], "timestamp": [1, 2]}, "Float64"),
        ({"user_id": [1, 2], "item_id": [1, 2], "timestamp": np.array(["2024-01-01", "NaT"], dtype="datetime64[ns]")}, "row 2, column .timestamp.: "),
        ({"user_id": [1, 2], "item_id": [1, 2], "timestamp": ["2024-01-01", "soon"]}, "row 2, column .timestamp.: "),
        ([], "no rows"),
        ([(1, 2, 3), (1, 2)], "row 2 is"),
        ([1, 2, 3], "row 1 is 1"),
        (None, "found None"),
        (17, "cannot be read from int"),
        (np.zeros((3, 7)), "shape"),
        (pyarrow.table({"user_id": [1], "item_id": [1.5], "timestamp": [1]}), "column `item_id` is of type Float64"),
        (pyarrow.table({"user_id": [1], "item_id": [1], "timestamp": [[1]]}), "column `timestamp`"),
    ],
)
def test_data_that_cannot_be_used_is_a_data_error(log: Any, message: str) -> None:
    with pytest.raises(satf.DataError, match=message) as caught:
        satf.fit(log)
    assert isinstance(caught.value, (satf.SatfError, ValueError))


def test_bad_rows_are_skipped_if_that_is_asked_for() -> None:
    with pytest.warns(satf.SatfWarning, match="skipped 1 bad row"):
        log = satf.read_log(frame(item_id=["a", None, "b"]), skip_bad_rows=1)
    assert len(log) == 2


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for call in (lambda: satf.fit(tmp_path / "none.csv"), lambda: satf.load(tmp_path / "none.satf")):
        with pytest.raises(FileNotFoundError, match="none") as caught:
            call()
        assert isinstance(caught.value, satf.MissingFileError)
    damaged = tmp_path / "damaged.satf"
    damaged.write_bytes(b"not a model" * 40)
    with pytest.raises(satf.ModelFileError, match="not a satf model file"):
        satf.load(damaged)
    bytes_of_model = bytearray(satf.fit(ROWS, "mp").to_bytes())
    bytes_of_model[-1] ^= 1
    damaged.write_bytes(bytes(bytes_of_model))
    for copy in (False, True):
        with pytest.raises(satf.ModelFileError, match="checksum"):
            satf.load(damaged, copy=copy)
    with pytest.raises(satf.ModelFileError):
        satf.fit(ROWS, "mp").save(tmp_path / "no" / "folder.satf")


def test_configurations_are_checked_before_the_work() -> None:
    for call, message in [
        (lambda: satf.fit(ROWS, "d-saft"), "did you mean 'd-satf'"),
        (lambda: satf.fit(ROWS, "pure-svd", ranks=3), "did you mean 'rank'"),
        (lambda: satf.fit(ROWS, "pure-svd", rank="many"), "rank"),
        (lambda: satf.fit(ROWS, "pure-svd", rank=0), "rank"),
        (lambda: satf.fit(ROWS, ties="random"), "ties"),
        (lambda: satf.fit(ROWS, seed=-1), "seed = -1"),
        (lambda: satf.fit(ROWS, threads=0), "threads = 0"),
        (lambda: satf.fit(ROWS, memory="much"), "memory='much'"),
        (lambda: satf.fit(ROWS, quantize="f8"), "quantize"),
        (lambda: satf.fit(ROWS, with_statistics=True, ties="file"), "statistics"),
        (lambda: satf.fit(ROWS, "mp").recommend([["tent"]], k=0), "k=0"),
        (lambda: satf.fit(ROWS, "mp").recommend([["tent"]], output="excel"), "output='excel'"),
        (lambda: satf.fit(ROWS, "mp").recommend([["tent"]], fallback="none"), "fallback='none'"),
        (lambda: satf.fit(ROWS, "mp").recommend([["tent"]], boost={"mug": float("nan")}), "boost of mug = nan"),
        (lambda: satf.fit(ROWS, "mp").recommend([["tent"]], boost={"mug": "*-1"}), "boost of mug"),
    ]:
        with pytest.raises(satf.ConfigError, match=message):
            call()
    with pytest.raises(satf.FitError):
        satf.fit(ROWS, "ease", memory_bytes=1)


def test_what_is_unknown_is_told_or_refused() -> None:
    model = satf.fit(ROWS, "transitions")
    with pytest.warns(satf.SatfWarning, match="'rope' in exclude"):
        model.recommend([["tent"]], exclude=["rope"])
    with pytest.warns(satf.SatfWarning, match="1 of 1 histories have no item that the model knows: they got nothing"):
        assert len(model.recommend([["rope"]])) == 0
    with pytest.warns(satf.SatfWarning, match="most popular"):
        popular = model.recommend([["rope"]], fallback="popular")
    assert popular["item_id"].iloc[0] == "tent" and set(popular["fallback"]) == {"popular"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(model.recommend([["tent", "rope"]])) == 2
        assert len(model.recommend([])) == 0
    for call in (lambda: model.similar("rope"), lambda: model.explain(["tent"], ["rope"])):
        with pytest.raises(satf.UnknownItemError, match="the model does not know the item 'rope'"):
            call()
    with pytest.raises(KeyError):
        model.similar(99)


@pytest.mark.parametrize(
    ("histories", "message"),
    [
        ([["tent"], "mug"], "'mug' is not a history"),
        ([[1.5]], "1.5 .* is not an id"),
        ([[None]], "None .* is not an id"),
        ([[True]], "True .* is not an id"),
        ([[float("nan")]], "nan .* is not an id"),
        ([[2**70]], "is not an id"),
        ({1: ["tent"], "b": ["tent"]}, "user b: expected an integer"),
        (17, "neither users nor histories"),
    ],
)
def test_histories_that_are_none(histories: Any, message: str) -> None:
    with pytest.raises(satf.DataError, match=message):
        satf.fit(ROWS, "transitions").recommend(histories)


def test_models_say_what_they_cannot_do() -> None:
    popular = satf.fit(ROWS, "mp")
    for call in (lambda: popular.similar("tent"), lambda: popular.item_embeddings, lambda: popular.attention):
        with pytest.raises(satf.RecommendError):
            call()
    with pytest.raises(satf.FitError, match="with_statistics=True"):
        popular.forget(users=["ann"])
    with pytest.raises(satf.FitError, match="with_statistics=True"):
        popular.add(ROWS)
    kept = satf.fit(ROWS, with_statistics=True)
    with pytest.raises(satf.FitError, match="nothing would be left"):
        kept.forget(users=["ann", "bob"])
    with pytest.warns(satf.SatfWarning, match="nothing to forget: zoe"):
        kept.forget(users=["zoe"])


def test_a_stream_that_fails_is_a_data_error() -> None:
    schema = pyarrow.schema([("user_id", pyarrow.int64()), ("item_id", pyarrow.int64()), ("timestamp", pyarrow.int64())])

    def batches() -> Any:
        yield pyarrow.record_batch([[1], [1], [1]], schema=schema)
        raise RuntimeError("the connection broke")

    with pytest.raises(satf.DataError, match="the connection broke"):
        satf.fit(pyarrow.RecordBatchReader.from_batches(schema, batches()))


def test_what_the_library_warns_of_is_a_warning() -> None:
    with pytest.warns(satf.SatfWarning, match="an order but no times, so trend plays no part") as told:
        satf.fit([row[:2] for row in ROWS], "d-satf", trend=0.3)
    assert len(told) == 1
