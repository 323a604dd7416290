"""LensKit's own tests of components and scorers (`lenskit.testing`), against the adapter.

Their fixtures read MovieLens files from the working folder; ours stand in for them: ML-100K if SATF_DATA names the folder that has it
(ml-100k.csv.gz), else a made-up log.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lenskit.data import from_interactions_df
from lenskit.testing import BasicComponentTests, ScorerTests

import satf
from satf.adapters.lenskit import SatfScorer


@pytest.fixture(scope="session")
def ml_ratings() -> Any:
    path = Path(os.environ.get("SATF_DATA", "")) / "ml-100k.csv.gz"
    if path.is_file():
        events = satf.read_log(path).to_frame("pandas")
    else:
        events = satf.generate(600, 500, 30_000, output="pandas").drop_duplicates(["user_id", "item_id"])
    events["timestamp"] = pd.to_datetime(events["timestamp"]).dt.tz_localize(None)
    return events.assign(rating=np.random.default_rng(1).integers(1, 6, len(events)).astype(np.float32))


@pytest.fixture(scope="module")
def ml_ds(ml_ratings: Any) -> Any:
    return from_interactions_df(ml_ratings)


@pytest.fixture(scope="session")
def ml_100k(ml_ratings: Any) -> Any:
    # Two of their tests ask for it before they look whether the class expects an error of predicted ratings. Ours predict none.
    return ml_ratings


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(42)


class TestComponent(BasicComponentTests):
    component = SatfScorer
    configs = [{"model": "ease", "keys": {"regularization": 100.0}}, {"ties": "basket", "seed": 3}]


class TestDSatf(ScorerTests):
    component = SatfScorer
    can_score = "known"


class TestEase(ScorerTests):
    component = SatfScorer
    config = SatfScorer.validate_config({"model": "ease"})
    can_score = "known"


class TestPureSvd(ScorerTests):
    component = SatfScorer
    config = SatfScorer.validate_config({"model": "pure-svd", "keys": {"rank": 20}})
    can_score = "known"


class TestTransitions(ScorerTests):
    component = SatfScorer
    config = SatfScorer.validate_config({"model": "transitions"})
    can_score = "known"
