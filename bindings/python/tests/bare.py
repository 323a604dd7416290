"""The package with nothing but NumPy: run by scripts/python-check in an environment of its own."""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import satf

for other in ("pandas", "polars", "pyarrow", "duckdb"):
    assert importlib.util.find_spec(other) is None, other

ROWS = [("ann", "tent", 1), ("ann", "stove", 2), ("bob", "tent", 3), ("bob", "stove", 4), ("bob", "mug", 5)]
model = satf.fit(ROWS)
table = model.recommend([["tent"]], k=2)
assert isinstance(table, satf.Table) and table.column_names == ["user_id", "item_id", "score", "rank"]
assert table.column("item_id")[0] == "stove" and list(table.column("rank")) == [1, 2]

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "shop.csv"
    program = Path(sys.executable).with_name("satf")
    subprocess.run([program, "generate", "--users", "200", "-o", path], check=True, stdout=subprocess.DEVNULL)
    log = satf.read_log(path)
    assert log.num_users == 200
    results = satf.evaluate(log, ["d-satf", "mp"], test="2months", valid="2months")
    assert results["d-satf"].metrics["NDCG@10"] > results["mp"].metrics["NDCG@10"]
    assert satf.compare(results["mp"], results["d-satf"]).p_values["NDCG@10"] < 0.05
    satf.fit(path).save(Path(folder) / "shop.satf")
    assert satf.load(Path(folder) / "shop.satf").name == "d-satf"
    saved = satf.load(Path(folder) / "shop.satf", copy=True)
print(f"satf {satf.__version__} alone on Python {sys.version.split()[0]}: holds")
