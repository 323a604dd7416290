"""RecTools' own asserts about models, and its cross-validation, against the adapter.

The files tests/models/utils.py and tests/models/data.py of https://github.com/MobileTeleSystems/RecTools are in no package, and not here either:
RECTOOLS_TESTS names their folder.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rectools import Columns
from rectools.dataset import Dataset
from rectools.metrics import MAP, NDCG, HitRate
from rectools.model_selection import LastNSplitter, TimeRangeSplitter, cross_validate
from rectools.models import PopularModel, RandomModel

import satf
from satf.adapters.rectools import SatfModel

WHERE = "the folder tests/models of a clone of https://github.com/MobileTeleSystems/RecTools"
folder = Path(os.environ.get("RECTOOLS_TESTS", ""))
if not (folder / "utils.py").is_file() or not (folder / "data.py").is_file():
    pytest.exit(f"RECTOOLS_TESTS={folder}: expected {WHERE}", returncode=2)


def module(name: str) -> Any:
    """One of their files."""
    specification = importlib.util.spec_from_file_location(f"rectools_tests_{name}", folder / f"{name}.py")
    assert specification is not None and specification.loader is not None
    found = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(found)
    return found


theirs, data = module("utils"), module("data")
MODELS = {
    "d-satf": {},
    "ease": {"regularization": 5.0},
    "pure-svd": {"rank": 2},
    "vmis-knn": {},
    "transitions": {},
}


@pytest.fixture
def dataset() -> Any:
    return data.DATASET


@pytest.mark.parametrize("name", MODELS)
def test_a_second_fit_fits_again(name: str, dataset: Any) -> None:
    theirs.assert_second_fit_refits_model(SatfModel(name, MODELS[name]), dataset)


@pytest.mark.parametrize("name", MODELS)
def test_dumps_and_files_change_nothing(name: str, dataset: Any) -> None:
    model = SatfModel(name, MODELS[name]).fit(dataset)
    theirs.assert_dumps_loads_do_not_change_model(model, dataset)
    theirs.assert_save_load_do_not_change_model(model, dataset)


def test_defaults_are_those_of_the_configuration() -> None:
    theirs.assert_default_config_and_default_model_params_are_the_same(SatfModel(), {"model": "d-satf"})
    theirs.assert_default_config_and_default_model_params_are_the_same(SatfModel(), {})


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("simple_types", [False, True])
def test_configurations_come_back(name: str, simple_types: bool, dataset: Any) -> None:
    config = {"model": name, "keys": MODELS[name], "ties": "basket", "seed": 4, "threads": 1, "verbose": 0}
    theirs.assert_get_config_and_from_config_compatibility(SatfModel, dataset, config, simple_types)


def test_the_adapter_is_a_model_among_theirs() -> None:
    from rectools.models.base import ModelBase

    assert SatfModel in theirs.get_successors(ModelBase)


@pytest.mark.parametrize("splitter", [TimeRangeSplitter("14D", n_splits=2), LastNSplitter(1, n_splits=2)])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_cross_validation(splitter: Any) -> None:
    import pandas as pd

    shop = satf.generate(users=400, output="pandas")
    frame = pd.DataFrame({Columns.User: shop["user_id"], Columns.Item: shop["item_id"], Columns.Weight: 1})
    frame[Columns.Datetime] = pd.to_datetime(shop["timestamp"]).dt.tz_localize(None)
    dataset = Dataset.construct(frame.drop_duplicates([Columns.User, Columns.Item]))
    models = {
        "d-satf": SatfModel(),
        "ease": SatfModel("ease", {"regularization": 50.0}),
        "popular": PopularModel(),
        "random": RandomModel(random_state=1),
    }
    metrics = {"MAP@5": MAP(5), "NDCG@5": NDCG(5), "hits@5": HitRate(5)}
    found = cross_validate(dataset, splitter, metrics, models, k=5, filter_viewed=True)
    table = pd.DataFrame(found["metrics"]).groupby("model").mean()
    print(table)
    for metric in metrics:
        assert table.loc["d-satf", metric] > table.loc["popular", metric] > table.loc["random", metric], table
        assert table.loc["ease", metric] > table.loc["popular", metric], table


def test_scores_are_those_of_the_matrix(dataset: Any) -> None:
    """EASE from the matrix of the dataset, as in its paper: X B, where B has the columns of the inverse over its diagonal."""
    matrix = dataset.get_user_item_matrix().toarray().astype(np.float64)
    inverse = np.linalg.inv(matrix.T @ matrix + 5.0 * np.eye(matrix.shape[1]))
    weights = inverse / -np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    model = SatfModel("ease", MODELS["ease"]).fit(dataset)
    found = model.recommend(dataset.user_id_map.external_ids, dataset, k=matrix.shape[1], filter_viewed=False)
    users = dataset.user_id_map.convert_to_internal(found[Columns.User])
    items = dataset.item_id_map.convert_to_internal(found[Columns.Item])
    assert len(found) == matrix.size
    assert np.allclose(found[Columns.Score], (matrix @ weights)[users, items], atol=1e-5)
