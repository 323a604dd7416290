"""The package, the command line and the library say the same, to the bit."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import MODELS, satf_json, satf_program

import satf


def bits(score: float) -> bytes:
    return struct.pack("<f", score)


def settings(keys: dict[str, Any]) -> list[str]:
    return [word for key, value in keys.items() for word in ("--set", f"{key}={json.dumps(value)}")]


def test_every_model_is_among_those_tested() -> None:
    assert {entry["name"] for entry in satf.models()} == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_a_frame_is_that_of_the_file_and_lists_are_the_same(name: str, shop: Any, shop_csv: Path, tmp_path: Path) -> None:
    keys = MODELS[name]
    trained, saved = tmp_path / "trained.satf", tmp_path / "saved.satf"
    satf_program("train", shop_csv, "--model", name, *settings(keys), "-o", trained)
    model = satf.fit(shop, name, **keys)
    model.save(saved)
    assert saved.read_bytes() == trained.read_bytes()
    assert model.to_bytes() == trained.read_bytes()
    assert satf.fit(shop_csv, name, **keys).to_bytes() == trained.read_bytes()

    lists = tmp_path / "lists.jsonl"
    satf_program("recommend", trained, "--histories", shop_csv, "-n", 7, "-o", lists)
    rows = [json.loads(line) for line in lists.read_text().splitlines()]
    for asked in (satf.load(trained), model):
        for histories in (shop, shop_csv):
            table = asked.recommend(histories, 7, output="table")
            assert list(table.column("user_id")) == [row["user_id"] for row in rows]
            assert list(table.column("item_id")) == [row["item_id"] for row in rows]
            assert list(table.column("rank")) == [row["rank"] for row in rows]
            given = np.asarray([row["score"] for row in rows], dtype=np.float64).astype(np.float32)
            assert np.array_equal(table.column("score").view(np.uint32), given.view(np.uint32))


def test_one_history_alone_has_the_bits_of_the_command_line(model: satf.Model, tmp_path: Path) -> None:
    path = tmp_path / "shop.satf"
    model.save(path)
    told = satf_json("recommend", path, "--history", "laptop,laptop sleeve", "-n", 5, "--explain")["recommendations"]
    table = model.recommend([["laptop", "laptop sleeve"]], 5, explain=True, output="table")
    assert table.column("item_id") == [row["item_id"] for row in told]
    assert [bits(score) for score in table.column("score")] == [bits(row["score"]) for row in told]
    assert table.column("shares") == [row["shares"] for row in told]
    assert list(table.column("base")) == [row["base"] for row in told]


def test_filters_and_boosts_are_those_of_the_command_line(model: satf.Model, tmp_path: Path) -> None:
    path = tmp_path / "shop.satf"
    model.save(path)
    history, options = ["laptop", "laptop sleeve"], ["--history", "laptop,laptop sleeve", "-n", 4]
    for given, words in [
        ({"exclude": ["usb-c hub"]}, ["--exclude", "usb-c hub"]),
        ({"items_to_recommend": ["usb-c hub", "gaming headset", "laptop"]}, ["--only", "usb-c hub,gaming headset,laptop"]),
        ({"filter_viewed": False}, ["--allow-seen"]),
        ({"allow_seen": ["laptop"]}, ["--allow-seen", "laptop"]),
        ({"boost": {"gaming headset": 2}}, ["--boost", "gaming headset=2"]),
        ({"boost": {"gaming headset": "*1.5", "usb-c hub": -0.25}}, ["--boost", "gaming headset=*1.5", "--boost", "usb-c hub=-0.25"]),
    ]:
        told = satf_json("recommend", path, *options, *words)["recommendations"]
        table = model.recommend([history], 4, output="table", **given)
        assert table.column("item_id") == [row["item_id"] for row in told], given
        assert [bits(score) for score in table.column("score")] == [bits(row["score"]) for row in told], given


def test_similar_items_are_those_of_the_command_line(model: satf.Model, tmp_path: Path) -> None:
    path = tmp_path / "shop.satf"
    model.save(path)
    told = satf_json("similar", path, "laptop", "-n", 6)
    rows = told["similar"] if "similar" in told else told["items"]
    table = model.similar("laptop", 6, output="table")
    assert table.column("item_id") == [row["item_id"] for row in rows]
    assert [bits(value) for value in table.column("similarity")] == [bits(row["similarity"]) for row in rows]
    assert table.column("target_item_id") == ["laptop"] * 6


def test_threads_change_no_bit(shop: Any, model: satf.Model) -> None:
    for threads in (1, 2, 3):
        other = satf.fit(shop, threads=threads)
        assert other.to_bytes() == model.to_bytes()
        table = other.recommend(shop, threads=threads, output="table")
        assert np.array_equal(table.column("score"), model.recommend(shop, output="table").column("score"))


def test_a_generated_log_is_that_of_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "shape.csv"
    satf_program("generate", "--users", 50, "--items", 20, "--rows", 200, "--seed", 3, "-o", path)
    made = satf.read_log(satf.generate(50, 20, 200, seed=3))
    assert made._core.fingerprint() == satf.read_log(path)._core.fingerprint()


def test_add_and_forget_are_training_on_what_is_left(shop: Any, tmp_path: Path) -> None:
    table = satf.read_log(shop).to_frame("table")
    rows = list(zip(table.column("user_id"), table.column("item_id"), (int(time) for time in table.column("timestamp"))))
    log = satf.read_log(rows, time_unit="microseconds")
    half = len(rows) // 2
    older, newer = satf.read_log(rows[:half], time_unit="microseconds"), satf.read_log(rows[half:], time_unit="microseconds")
    model = satf.fit(older, with_statistics=True)
    assert model.add(newer) is model
    assert model.to_bytes() == satf.fit(log, with_statistics=True).to_bytes()

    gone = {rows[0][0], rows[5][0]}
    kept = satf.read_log([row for row in rows if row[0] not in gone and row[1] != "tent"], time_unit="microseconds")
    model.forget(users=gone, items="tent")
    assert model.to_bytes() == satf.fit(kept, with_statistics=True).to_bytes()

    path = tmp_path / "kept.satf"
    satf.fit(log, with_statistics=True).save(path)
    satf_program("forget", path, "--user", ",".join(sorted(gone)), "--item", "tent")
    assert path.read_bytes() == model.to_bytes()
