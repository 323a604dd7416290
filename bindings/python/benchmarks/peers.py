#!/usr/bin/env python3
"""Speed and quality beside other packages, in one run on one machine.

    python benchmarks/peers.py DATA OUTPUT --python implicit=PYTHON --python rectools=PYTHON --python lenskit=PYTHON

DATA is a folder with ml-1m.ratings.dat.gz and amz-beauty.csv.gz, OUTPUT the page that is written. It runs in an environment with satf; each other
package has its own (scripts/outside-python makes them), because they do not agree on versions. The same script does the work there, as a
process of its own for every training that is timed.

Everybody gets the same events and the same histories as arrays. Configurations are chosen by NDCG@10 on the validation set; the best one is trained
again on training and validation set together and asked for a list per event of the test set, three times: the median is reported.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from contestants import CONTESTANTS, Problem, version

K = 10
REPETITIONS = 3
DATASETS = {
    "ML-1M": ("ml-1m.ratings.dat.gz", "4months"),
    "Amazon Beauty": ("amz-beauty.csv.gz", "3weeks"),
}
# implicit says that BLAS with threads of its own slows it down, and asks for this.
NOTES = """
Everybody else gets the same care as we do: a grid of the keys that matter, judged by NDCG@10 on the validation set. D-SATF has nothing to tune here; it learns its
exponents from the log while it trains, and that is in its seconds.

* implicit's models are asked for arbitrary histories as their documentation says: ALS with `recalculate_user`, item-item models by rows. BLAS has one thread there, as the package asks for.
* RecTools' EASE (0.19.0) multiplies histories by the transposed weights: its scores are X Bᵀ where the paper has X B. It is measured as it is, so its quality is not that of
  our EASE. The dataset of histories carries the item numbers of the training: one that is constructed anew numbers items anew, and the model does not translate.
* LensKit's kNN is asked query by query. Its batch runner with two processes took longer where it was tried: 34 s instead of 6 for 300 queries of ML-100K, the start of
  processes included, on a busy machine.
* ALS, EASE and item-item models see a set of items; D-SATF sees their order too.
"""
ENVIRONMENT = {"implicit": {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}}


def write_problem(cut: Any, path: Path) -> dict[str, Any]:
    """The events and histories of a split as arrays; gives what they are judged by."""
    train = cut.training_set
    place = {item: at for at, item in enumerate(train.items)}
    owners = np.repeat(np.arange(train.num_users), np.diff(train.indptr))
    lists = [[place[item] for item in history] for history in cut.histories]
    indptr = np.cumsum([0, *map(len, lists)])
    np.savez(
        path,
        users=owners,
        items=train.indices,
        times=train.times,
        indptr=indptr,
        indices=np.concatenate([np.asarray(each, dtype=np.int64) for each in lists]),
        num_items=train.num_items,
    )
    events = cut._core.events()
    column = events.column("item_id")
    targets = np.array([place[item] for item in (column.tolist() if hasattr(column, "tolist") else column)])
    users = np.unique(np.asarray(events.column("user_id")), return_inverse=True)[1].ravel()
    return {"targets": targets, "users": users, "rows": len(train), "num_users": train.num_users, "num_items": train.num_items}


def judge(lists: Any, truth: dict[str, Any]) -> dict[str, float]:
    """NDCG and hit rate with standard errors clustered by user."""
    hits = lists == truth["targets"][:, None]
    gains = (hits / np.log2(np.arange(K) + 2.0)).sum(axis=1)
    found = {}
    for name, values in (("ndcg", gains), ("hr", hits.any(axis=1).astype(float))):
        mean = values.mean()
        by_user = np.bincount(truth["users"], weights=values - mean)
        found[name] = float(mean)
        found[f"{name} stderr"] = float(np.sqrt((by_user**2).sum()) / len(values))
    return found


def work(arguments: argparse.Namespace) -> None:
    """In the environment of a package: train, recommend, write lists and seconds."""
    problem = Problem(arguments.problem)
    contestant = CONTESTANTS[arguments.worker]()
    for module in contestant.modules:
        importlib.import_module(module)
    began = time.perf_counter()
    contestant.fit(problem, **json.loads(arguments.configuration))
    trained = time.perf_counter()
    lists = contestant.recommend(problem, K)
    done = time.perf_counter()
    np.save(arguments.lists, np.asarray(lists, dtype=np.int64))
    report = {
        "train": trained - began,
        "recommend": done - trained,
        "peak": peak_memory(),
        "version": version(contestant.package),
        "python": platform.python_version(),
    }
    print(json.dumps(report))


def peak_memory() -> float:
    """The most memory that this process had, in MiB. (What getrusage says is at least that of the parent.)"""
    status = Path("/proc/self/status").read_text()
    return float(status.split("VmHWM:")[1].split()[0]) / 1024


def run(name: str, python: str, problem: Path, configuration: dict[str, Any], folder: Path) -> dict[str, Any]:
    """One training and its lists, in a process of its own."""
    lists = folder / "lists.npy"
    command = [python, __file__, "--worker", name, "--problem", str(problem), "--lists", str(lists)]
    command += ["--configuration", json.dumps(configuration)]
    environment = {**os.environ, **ENVIRONMENT.get(CONTESTANTS[name].package, {})}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"{name} {configuration}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return {**json.loads(done.stdout.splitlines()[-1]), "lists": np.load(lists)}


def contest(name: str, python: str, problems: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The best configuration of one contestant by the validation set, and how it does on the test set."""
    tried, seconds = [], 0.0
    grid = CONTESTANTS[name].grid
    for configuration in grid if len(grid) > 1 else []:
        outcome = run(name, python, problems["valid"][0], configuration, folder)
        seconds += outcome["train"] + outcome["recommend"]
        tried.append((judge(outcome["lists"], problems["valid"][1])["ndcg"], configuration))
        print(f"  {name} {configuration}: {tried[-1][0]:.4f} on validation", file=sys.stderr)
    best = max(tried, key=lambda trial: trial[0])[1] if tried else grid[0]
    outcomes = [run(name, python, problems["test"][0], best, folder) for _ in range(REPETITIONS)]
    scores = judge(outcomes[0]["lists"], problems["test"][1])
    medians = {what: statistics.median(outcome[what] for outcome in outcomes) for what in ("train", "recommend", "peak")}
    spread = {what: [min(each), max(each)] for what in ("train", "recommend") for each in [[outcome[what] for outcome in outcomes]]}
    row = {"name": name, "best": best, "tried": len(tried), "tuning": seconds, "spread": spread, **scores, **medians}
    row |= {key: outcomes[0][key] for key in ("version", "python")}
    print(f"{name}: NDCG {row['ndcg']:.4f}, train {row['train']:.2f} s, recommend {row['recommend']:.2f} s", file=sys.stderr)
    return row


def prepare(path: Path, offset: str, folder: Path) -> dict[str, Any]:
    """The problems of one dataset: what is tuned on, and what is reported."""
    import satf

    cut = satf.split(path, test=offset, seed=1)
    before = cut.training_set.to_frame("table")
    columns = {name: before.column(name) for name in before.column_names}
    inner = satf.split(satf.read_log(columns, time_unit="microseconds"), test=offset, ties="file")
    problems = {}
    for name, each in (("valid", inner), ("test", cut)):
        problem = folder / f"{name}.npz"
        problems[name] = problem, write_problem(each, problem)
    return problems


def gemm_rate() -> float:
    """GFLOP/s of a product of single precision: what the machine gives in this minute."""
    side = 2000
    matrix = np.random.default_rng(1).random((side, side), dtype=np.float32)
    best = min(_seconds(lambda: matrix @ matrix) for _ in range(5))
    return 2 * side**3 / best / 1e9


def _seconds(call: Any) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def page(tables: dict[str, Any], rates: list[float]) -> str:
    """The page with all tables."""
    lines = [
        "# Beside other packages",
        "",
        f"Made by `bindings/python/benchmarks/peers.py` in one run: {os.cpu_count()} cores, Python {platform.python_version()} for satf, NumPy's products at "
        f"{' and '.join(f'{rate:.0f}' for rate in rates)} GFLOP/s (single) before and after.",
        "",
        "Same events, same histories, same lists of 10 for everybody: the log is cut by time, each event of the test set is predicted from its user's earlier "
        "events, all items are ranked but those that the user has. Ties are shuffled once. Everybody is asked from arrays in memory; the seconds of training and "
        "recommending include whatever the package does to them. `±` is one standard error, clustered by user. Seconds are the median of three runs, each in a "
        "process of its own; the range is beside it where it is wider than a tenth. Memory is the peak of that process, Python and libraries included.",
        "",
    ]
    for dataset, (truth, table) in tables.items():
        lines += [
            f"## {dataset}",
            "",
            f"{truth['rows']:,} events of {truth['num_users']:,} users and {truth['num_items']:,} items to learn from, {len(truth['targets']):,} lists.",
            "",
            "| model | NDCG@10 | HR@10 | train s | recommend s | lists a second | peak MiB |",
            "|---|---|---|---|---|---|---|",
        ]
        for row in table:
            quality = " | ".join(f"{row[name]:.4f} ± {row[f'{name} stderr']:.4f}" for name in ("ndcg", "hr"))
            seconds = " | ".join(shown(row, what) for what in ("train", "recommend"))
            rate = len(truth["targets"]) / row["recommend"]
            lines.append(f"| {row['name']} | {quality} | {seconds} | {rate:,.0f} | {row['peak']:,.0f} |")
        lines += ["", "| model | version | configuration | tried on validation, seconds in all |", "|---|---|---|---|"]
        for row in table:
            best = ", ".join(f"{key} {value}" for key, value in row["best"].items()) or "defaults"
            tried = f"{row['tried']}, {row['tuning']:.0f}" if row["tried"] else "none"
            lines.append(f"| {row['name']} | {row['version']} (Python {row['python']}) | {best} | {tried} |")
        lines.append("")
    lines += ["## What was tried", ""]
    for name, contestant in CONTESTANTS.items():
        values: dict[str, list[Any]] = {}
        for configuration in contestant.grid:
            for key, value in configuration.items():
                values.setdefault(key, [])
                values[key] += [value] if value not in values[key] else []
        grid = "; ".join(f"`{key}` {', '.join(map(str, each))}" for key, each in values.items()) or "nothing, the defaults"
        lines.append(f"* {name}: {grid}")
    return "\n".join(lines) + "\n" + NOTES


def shown(row: dict[str, Any], what: str) -> str:
    """Seconds, with their range where it is wide."""
    low, high = row["spread"][what]
    return f"{row[what]:.2f}" + (f" ({low:.2f}-{high:.2f})" if high - low > 0.1 * row[what] else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("output", nargs="?", type=Path)
    parser.add_argument("--python", action="append", default=[], help="PACKAGE=PYTHON: the interpreter that has a package")
    parser.add_argument("--only", help="datasets and models whose names contain this text, for a quick look")
    for name in ("worker", "problem", "lists", "configuration"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return work(arguments)
    if arguments.data is None or arguments.output is None:
        parser.error("expected DATA and OUTPUT")
    pythons = {"satf": sys.executable, **dict(each.split("=", 1) for each in arguments.python)}
    absent = sorted({each.package for each in CONTESTANTS.values()} - pythons.keys())
    if absent:
        parser.error(f"no interpreter for {', '.join(absent)}; expected --python {absent[0]}=PYTHON (scripts/outside-python makes environments)")
    rates, tables = [gemm_rate()], {}
    for dataset, (file, offset) in DATASETS.items():
        names = [name for name in CONTESTANTS if not arguments.only or arguments.only in f"{dataset} {name}"]
        if not names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            problems = prepare(arguments.data / file, offset, Path(folder))
            print(f"{dataset}: {len(problems['test'][1]['targets'])} events", file=sys.stderr)
            table = [contest(name, pythons[CONTESTANTS[name].package], problems, Path(folder)) for name in names]
        tables[dataset] = problems["test"][1], table
        rates.append(gemm_rate())
        arguments.output.write_text(page(tables, [rates[0], rates[-1]]))


if __name__ == "__main__":
    main()
