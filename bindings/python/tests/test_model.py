"""A model in use: kept, copied, looked at, asked from many threads."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import MODELS

import satf


def scores(model: satf.Model, histories: Any) -> bytes:
    table = model.recommend(histories, output="table")
    return bytes(np.asarray(table.column("score")).tobytes()) + repr(list(table.column("item_id"))).encode()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_the_same_pickled_copied_saved_and_loaded(name: str, shop: Any, tmp_path: Path) -> None:
    model = satf.fit(shop, name, **MODELS[name])
    path = tmp_path / "model.satf"
    model.save(path)
    histories = [["laptop", "laptop sleeve"], ["tent"], [["tent", "camping stove"], "headlamp"]]
    expected = scores(model, histories)
    for other in (
        pickle.loads(pickle.dumps(model)),
        copy.copy(model),
        copy.deepcopy(model),
        satf.load(path),
        satf.load(path, copy=True),
        satf.Model.load(path),
    ):
        assert scores(other, histories) == expected
        assert other.to_bytes() == model.to_bytes()


def test_scores_of_all_items_are_those_of_the_lists(model: satf.Model) -> None:
    histories = [["laptop", "laptop sleeve"], ["tent"]]
    every = model.score(histories)
    assert every.shape == (2, model.num_items) and every.dtype == np.float32
    table = model.recommend(histories, 3, filter_viewed=False, output="table")
    for user, item, score in zip(table.column("user_id"), table.column("item_id"), table.column("score")):
        assert every[user, model.items.index(item)] == score
    for row, user in zip(every, (0, 1)):
        best = [item for at, item in zip(table.column("user_id"), table.column("item_id")) if at == user]
        assert [model.items[at] for at in np.argsort(-row, kind="stable")[:3]] == best


def test_shares_sum_to_the_score(model: satf.Model) -> None:
    table = model.explain(["laptop", "laptop sleeve"], ["usb-c hub", "tent"], output="table")
    items, bases, shares, found = (table.column(name) for name in ("item_id", "base", "share", "score"))
    assert items == ["usb-c hub"] * 2 + ["tent"] * 2
    assert table.column("history_item_id") == ["laptop", "laptop sleeve"] * 2
    for first in (0, 2):
        assert shares[first] + shares[first + 1] + bases[first] == pytest.approx(found[first], abs=1e-6)


@pytest.mark.parametrize("name", ["d-satf", "pure-svd", "la-satf", "sasrec"])
def test_item_embeddings_are_a_view(name: str, shop: Any, tmp_path: Path) -> None:
    model = satf.fit(shop, name, **MODELS[name])
    factors = model.item_embeddings
    assert factors.shape[0] == model.num_items and factors.dtype == np.float32
    assert not factors.flags.owndata and not factors.flags.writeable
    with pytest.raises(ValueError):
        factors[0, 0] = 1
    assert factors.__array_interface__["data"][0] == model.item_embeddings.__array_interface__["data"][0]
    before = factors.copy()
    del model
    # The view keeps what it shows.
    assert np.array_equal(factors, before)


def test_the_cosine_of_embeddings_is_the_similarity(shop: Any) -> None:
    model = satf.fit(shop, "pure-svd", rank=8)
    factors = model.item_embeddings.astype(np.float64)
    lengths = np.linalg.norm(factors, axis=1)
    at = model.items.index("laptop")
    cosines = factors @ factors[at] / np.maximum(lengths * lengths[at], 1e-300)
    table = model.similar("laptop", 5, output="table")
    for item, similarity in zip(table.column("item_id"), table.column("similarity")):
        assert cosines[model.items.index(item)] == pytest.approx(similarity, abs=1e-5)


def test_a_model_shows_itself(model: satf.Model) -> None:
    shown = model.inspect()
    assert shown["manifest"]["model"] == model.name == "d-satf"
    assert model.keys.keys() == {key for entry in satf.models() if entry["name"] == "d-satf" for key in entry["keys"]}
    assert model.learned["rank"] is not None
    assert repr(model).startswith("<satf.Model d-satf: ")
    page = model._repr_html_()
    assert page.startswith("<table>") and "d-satf" in page and "from the log" in page
    assert model.attention[0] == pytest.approx(1.0) and model.attention.ndim == 1
    assert len(model.item_counts) == model.num_items and int(model.item_counts.sum()) == shown["manifest"]["dataset"]["rows"]


def test_keys_of_a_model_make_the_same_model_again(shop: Any, model: satf.Model) -> None:
    again = satf.fit(shop, model.name, **model.keys)
    assert again.to_bytes() == model.to_bytes()


def test_threads_ask_at_once_and_get_the_same(shop: Any, model: satf.Model) -> None:
    expected = scores(model, shop)
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(lambda _: scores(model, shop), range(8))) == {expected}
        lone = scores(model, [["tent"]])
        assert set(threads.map(lambda _: scores(model, [["tent"]]), range(200))) == {lone}


def test_the_interpreter_runs_on_while_a_model_is_fitted() -> None:
    log = satf.read_log(satf.generate(3000, 500, 60_000))
    ticks, over = 0, threading.Event()
    thread = threading.Thread(target=lambda: (satf.fit(log, "ease"), over.set()))
    thread.start()
    while not over.is_set():
        ticks += 1
        time.sleep(0.001)
    thread.join()
    assert ticks > 5


def child(model: satf.Model, shop: Any, answers: Any) -> None:
    answers.put((scores(model, shop), satf.fit(shop).to_bytes()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_works_on(model: satf.Model, shop: Any) -> None:
    expected = scores(model, shop), model.to_bytes()
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    children = [context.Process(target=child, args=(model, shop, answers)) for _ in range(2)]
    for process in children:
        process.start()
    assert [answers.get(timeout=120) for _ in children] == [expected] * 2
    for process in children:
        process.join(60)
        assert process.exitcode == 0
    # And the parent after it.
    assert scores(model, shop) == expected[0]


INTERRUPTED = """
    import os, signal, sys, threading, time
    import satf
    log = satf.read_log(satf.generate(20_000, 5_000, 400_000))
    print("ready", flush=True)
    began = time.monotonic()
    try:
        satf.fit(log, "sasrec", epochs=1000)
    except KeyboardInterrupt:
        print("stopped", flush=True)
    else:
        print("finished", flush=True)
    # It works on.
    satf.fit([(1, 1, 1), (1, 2, 2), (2, 1, 3), (2, 2, 4)])
    print("alive", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_stops_the_work_and_not_the_interpreter() -> None:
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(INTERRUPTED)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert out == "stopped\nalive\n", err
    assert process.returncode == 0


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_killed_interpreter_leaves_no_half_file(tmp_path: Path) -> None:
    path = tmp_path / "model.satf"
    code = f"import satf; log = satf.generate(20_000, 5_000, 400_000); print('ready', flush=True)\nwhile True: satf.fit(log, 'transitions').save({str(path)!r})"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(1.0)
    process.kill()
    process.wait()
    if path.exists():
        assert satf.load(path).num_items == 5000


def test_a_panic_is_an_exception(tmp_path: Path) -> None:
    from satf import _satf

    model = satf.fit([(1, 1, 1), (1, 2, 2), (2, 1, 3), (2, 2, 4)])
    other = satf.fit([(1, item, item) for item in range(1, 60)] + [(2, item, item) for item in range(1, 60)], "mp")
    # Histories of another model: indices that this one does not have.
    histories = other._core.histories_of_lists([[50], [51]])
    with pytest.raises(satf.SatfError):
        model._core.recommend(histories, {"k": 1}, None)
    with pytest.raises(satf.InternalError, match="never should"):
        model._core.score(histories, _satf.Work())
    assert model.recommend([[1]], output="table").column("item_id").tolist() == [2]


def test_progress_is_shown_if_it_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    log = satf.read_log(satf.generate(20_000, 3_000, 300_000))
    satf.fit(log, "pure-svd", rank=200, progress=True)
    assert "singular vectors" in capsys.readouterr().err
    satf.fit(log, "pure-svd", rank=200)
    assert capsys.readouterr().err == ""
