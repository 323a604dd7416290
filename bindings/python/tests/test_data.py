"""Events come from anywhere, and results go back as what came in."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import satf

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")

ROWS = [(2, "tent", 10), (2, "stove", 20), (1, "tent", 30), (1, "mug", 40), (3, "mug", 50), (3, "stove", 60)]
USERS, ITEMS, TIMES = (list(column) for column in zip(*ROWS))
COLUMNS = {"user_id": USERS, "item_id": ITEMS, "timestamp": TIMES}


class Stream:
    """Something that speaks Arrow and nothing else."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class Batch:
    """The same with a single array."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self.batch.__arrow_c_array__(requested_schema)


def sources(folder: Path) -> dict[str, Any]:
    frame = pandas.DataFrame(COLUMNS)
    table = pyarrow.table(COLUMNS)
    csv, parquet = folder / "log.csv", folder / "log.parquet"
    frame.to_csv(csv, index=False)
    frame.to_parquet(parquet)
    structured = np.array(ROWS, dtype=[("user_id", "i8"), ("item_id", "U8"), ("timestamp", "i8")])
    return {
        "pandas": frame,
        "pandas, other columns beside them": frame.assign(price=1.5, note=[{}] * 6)[["note", "item_id", "price", "timestamp", "user_id"]],
        "pandas, categories": frame.astype({"item_id": "category"}),
        "pandas, objects": frame.astype({"item_id": object}),
        "pandas, Arrow types": frame.convert_dtypes(dtype_backend="pyarrow"),
        "pandas, nullable integers": frame.astype({"user_id": "Int64"}),
        "pandas, small integers": frame.astype({"user_id": "int8", "timestamp": "uint32"}),
        "polars": polars.DataFrame(COLUMNS),
        "polars, lazy": polars.LazyFrame(COLUMNS),
        "polars, categories": polars.DataFrame(COLUMNS).with_columns(polars.col("item_id").cast(polars.Categorical)),
        "table": table,
        "batches": pyarrow.Table.from_batches(table.to_batches(max_chunksize=2)),
        "reader": table.to_reader(max_chunksize=4),
        "batch": table.combine_chunks().to_batches()[0],
        "stream": Stream(table),
        "array": Batch(table.to_batches()[0]),
        "duckdb": duckdb.from_arrow(table),
        "dict of lists": COLUMNS,
        "dict of arrays": {"user_id": np.array(USERS), "item_id": np.array(ITEMS), "timestamp": np.array(TIMES, dtype=np.int32)},
        "dict of objects": {"user_id": np.array(USERS, dtype=object), "item_id": np.array(ITEMS, dtype=object), "timestamp": TIMES},
        "swapped bytes": {"user_id": np.array(USERS, dtype=">i4"), "item_id": ITEMS, "timestamp": np.array(TIMES)[::1].astype(">i8")},
        "steps": {"user_id": np.repeat(USERS, 2)[::2], "item_id": ITEMS, "timestamp": TIMES},
        "structured": structured,
        "rows": ROWS,
        "tuple of rows": tuple(ROWS),
        "path": csv,
        "text of a path": str(csv),
        "paths": [parquet],
        "log": satf.read_log(ROWS),
    }


def test_every_source_gives_the_same_log(tmp_path: Path) -> None:
    expected = satf.read_log(ROWS)._core.fingerprint()
    for name, source in sources(tmp_path).items():
        assert satf.read_log(source)._core.fingerprint() == expected, name


def test_every_source_gives_the_same_model(tmp_path: Path) -> None:
    expected = satf.fit(ROWS, "transitions").to_bytes()
    for name, source in sources(tmp_path).items():
        assert satf.fit(source, "transitions").to_bytes() == expected, name


def test_results_come_as_what_went_in(tmp_path: Path) -> None:
    kinds = {"pandas": pandas.DataFrame, "polars": polars.DataFrame, "table": pyarrow.Table, "duckdb": pyarrow.Table, "rows": pandas.DataFrame, "path": pandas.DataFrame}
    for name, source in sources(tmp_path).items():
        if name not in kinds:
            continue
        model = satf.fit(source, "transitions")
        for frame in (model.recommend([["tent"]]), model.recommend([2, 3]), model.similar("tent", 2), model.explain(["tent"], "mug")):
            assert isinstance(frame, kinds[name]), name
        assert model.recommend([["tent"]], output="table").column_names == ["user_id", "item_id", "score", "rank"]
        other = model.recommend(polars.DataFrame(COLUMNS))
        assert isinstance(other, polars.DataFrame)
        assert isinstance(model.recommend([["tent"]], output="arrow"), pyarrow.Table)


def test_ids_stay_what_they_are() -> None:
    model = satf.fit(ROWS, "transitions")
    frame = model.recommend([2, 1], 3)
    assert str(frame["user_id"].dtype) == "int64" and set(frame["item_id"]) <= set(ITEMS)
    assert str(frame["score"].dtype) == "float32"
    turned = satf.fit([(user, item, time) for item, user, time in ROWS], "transitions")
    assert str(turned.recommend([[1, 2]])["item_id"].dtype) == "int64"
    assert turned.items == [1, 2, 3] and model.items == ["mug", "stove", "tent"]


@pytest.mark.parametrize(
    "names",
    [
        ("user_id", "item_id", "datetime"),  # RecTools
        ("user_id", "item_id", "timestamp"),  # LensKit
        ("user_num", "item_num", "timestamp"),
        ("user", "item", "time"),
        ("userId", "itemId", "ts"),
        ("visitorid", "itemid", "timestamp"),
        ("customer_id", "product_id", "date"),
        ("uid", "asin", "unixReviewTime"),
    ],
)
def test_names_of_columns_are_recognised(names: tuple[str, str, str]) -> None:
    frame = pandas.DataFrame(dict(zip(names, (USERS, ITEMS, TIMES)))).assign(weight=1.0)
    assert satf.read_log(frame)._core.fingerprint() == satf.read_log(ROWS)._core.fingerprint()


def test_names_of_columns_can_be_given() -> None:
    frame = pandas.DataFrame({"who": USERS, "what": ITEMS, "when": TIMES})
    columns = {"user": "who", "item": "what", "time": "when"}
    assert satf.fit(frame, "mp", columns=columns).to_bytes() == satf.fit(ROWS, "mp").to_bytes()
    with pytest.raises(satf.DataError, match=r'"who", "what", "when"\nhint: columns=\{"user": '):
        satf.fit(frame, "mp")
    with pytest.raises(satf.ConfigError, match="'customer' is not a role"):
        satf.fit(frame, "mp", columns={"customer": "who"})
    with pytest.raises(satf.DataError, match="whom"):
        satf.fit(frame, "mp", columns={**columns, "user": "whom"})


def test_times_are_read_in_every_type() -> None:
    moments = [datetime.datetime(2024, 5, 1, 12, second) for second in range(6)]
    expected = satf.read_log(list(zip(USERS, ITEMS, moments)))._core.fingerprint()
    numpy_times = np.array(moments, dtype="datetime64[us]")
    zone = datetime.timezone(datetime.timedelta(hours=2))
    aware = [moment.replace(tzinfo=datetime.timezone.utc).astimezone(zone) for moment in moments]
    for times in (
        numpy_times,
        numpy_times.astype("datetime64[s]"),
        numpy_times.astype("datetime64[ms]"),
        numpy_times.astype("datetime64[ns]"),
        pandas.to_datetime(numpy_times),
        pandas.to_datetime(numpy_times).tz_localize("UTC").tz_convert("Europe/Berlin"),
        aware,
        [moment.isoformat() for moment in moments],
        [int(moment.replace(tzinfo=datetime.timezone.utc).timestamp()) for moment in moments],
        [float(moment.replace(tzinfo=datetime.timezone.utc).timestamp()) for moment in moments],
    ):
        for frame in (pandas.DataFrame({"user": USERS, "item": ITEMS, "time": times}), {"user": USERS, "item": ITEMS, "time": times}):
            assert satf.read_log(frame)._core.fingerprint() == expected, type(times)
    days = [datetime.date(2024, 5, day) for day in range(1, 7)]
    assert satf.read_log(list(zip(USERS, ITEMS, days))).statistics()["last_time"] == "2024-05-06T00:00:00Z"


def test_an_order_is_enough() -> None:
    pairs = [row[:2] for row in ROWS]
    log = satf.read_log(pairs)
    assert not log.has_times
    assert satf.read_log(np.array([[1, 5], [1, 6], [2, 5]])).num_items == 2
    model = satf.fit(pairs, "transitions")
    # Histories need no times, whatever else a frame has.
    frame = pandas.DataFrame({"user": [7, 7], "item": ["tent", "mug"], "price": [1, 2]})
    lists = model.recommend(frame, 2)
    assert list(lists["item_id"]) == list(model.recommend([["tent", "mug"]], 2)["item_id"])


def test_histories_come_in_every_shape(tmp_path: Path) -> None:
    model = satf.fit(ROWS, "transitions")
    expected = list(model.recommend([["tent"], ["mug", "stove"]])["item_id"])
    for histories in (
        (("tent",), ("mug", "stove")),
        [np.array(["tent"]), np.array(["mug", "stove"])],
        pandas.Series([["tent"], ["mug", "stove"]]),
        polars.Series([["tent"], ["mug", "stove"]]),
        {"ann": ["tent"], "bob": ["mug", "stove"]},
        pandas.DataFrame({"user_id": [5, 4, 4], "item_id": ["tent", "mug", "stove"], "time": [1, 2, 3]}),
        # In any order.
        pandas.DataFrame({"user_id": [5, 4, 4], "item_id": ["tent", "stove", "mug"], "time": [1, 3, 2]}),
    ):
        assert list(model.recommend(histories, output="pandas")["item_id"]) == expected
    assert list(model.recommend({"ann": ["tent"]})["user_id"].unique()) == ["ann"]
    path = tmp_path / "histories.json"
    path.write_text('[["tent"], ["mug", "stove"]]')
    assert list(model.recommend(path)["item_id"]) == expected


def test_users_are_asked_for_by_id_or_with_a_log(tmp_path: Path) -> None:
    model = satf.fit(ROWS, "transitions")
    known = model.recommend([2, 3])
    assert list(known["user_id"].unique()) == [2, 3]
    assert list(known["item_id"]) == list(model.recommend([["tent", "stove"], ["mug", "stove"]])["item_id"])
    assert list(model.recommend()["user_id"].unique()) == [1, 2, 3]
    for users in (pandas.Series([2, 3]), np.array([2, 3]), (2, 3), pyarrow.array([2, 3]), pyarrow.chunked_array([[2], [3]])):
        assert model.recommend(users).equals(known), type(users)
    assert model.recommend(polars.Series([2, 3]), output="pandas").equals(known)
    path = tmp_path / "model.satf"
    model.save(path)
    loaded = satf.load(path)
    assert loaded.recommend([2, 3], log=ROWS).equals(known)
    assert satf.fit(ROWS, "transitions", with_statistics=True).recommend([2, 3]).equals(known)
    with pytest.raises(satf.RecommendError, match=r"a flat list names users.*\[\[2"):
        loaded.recommend([2, 3])
    with pytest.raises(satf.RecommendError, match="log="):
        satf.fit(ROWS, "transitions", keep_histories=False).recommend()
    with pytest.warns(satf.SatfWarning, match="1 of 2 histories"):
        assert list(model.recommend([2, 77])["user_id"].unique()) == [2]


def test_no_column_is_copied() -> None:
    # Arrow batches that are released once they are read: what is left is the log, 16 bytes a row, and ids.
    rows = 2_000_000
    table = pyarrow.table({
        "user_id": pyarrow.array(np.arange(rows) % 1000),
        "item_id": pyarrow.array(np.arange(rows) % 50),
        "timestamp": pyarrow.array(np.arange(rows)),
    })
    before = pyarrow.total_allocated_bytes()
    log = satf.read_log(table)
    assert pyarrow.total_allocated_bytes() == before and len(log) == rows
    array = np.arange(rows)
    frame = pandas.DataFrame({"user_id": array % 1000, "item_id": array % 50, "timestamp": array})
    before = pyarrow.total_allocated_bytes()
    assert len(satf.read_log(frame)) == rows
    assert pyarrow.total_allocated_bytes() == before


def test_pandas_works_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("satf._data", "satf._frames"):
        monkeypatch.setattr(f"{module}.is_installed", lambda name: name != "pyarrow")
    moments = pandas.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05", "2024-01-06"])
    for times in (TIMES, moments, moments.tz_localize("UTC")):
        frame = pandas.DataFrame({"user_id": USERS, "item_id": ITEMS, "timestamp": times})
        log = satf.read_log(frame)
        assert len(log) == 6 and log.to_frame()["item_id"].tolist() == ITEMS
        assert str(log.to_frame()["timestamp"].dtype).startswith("datetime64")
    lists = satf.fit(frame, "transitions").recommend([["tent"]], explain=True)
    assert list(lists.columns) == ["user_id", "item_id", "score", "rank", "shares", "base", "boost"]
    assert lists["shares"].iloc[0][0]["item_id"] == "tent" and str(lists["score"].dtype) == "float32"
    with pytest.raises(satf.DataError, match="row 2, column"):
        satf.read_log(pandas.DataFrame({"user_id": [1, 2], "item_id": ["a", None], "timestamp": [1, 2]}))
