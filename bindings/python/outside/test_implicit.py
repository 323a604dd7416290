"""implicit's own tests of recommenders, against the adapter.

The file tests/recommender_base_test.py of https://github.com/benfred/implicit is in no package, and not here either: IMPLICIT_TESTS names it.
"""

from __future__ import annotations

import importlib.util
import os
import unittest
from pathlib import Path
from typing import Any

import pytest

from satf.adapters.implicit import SatfRecommender

WHERE = "the file tests/recommender_base_test.py of a clone of https://github.com/benfred/implicit"
path = os.environ.get("IMPLICIT_TESTS")
if path is None or not Path(path).is_file():
    pytest.exit(f"IMPLICIT_TESTS={path}: expected {WHERE}", returncode=2)

specification = importlib.util.spec_from_file_location("recommender_base_test", path)
assert specification is not None and specification.loader is not None
theirs = importlib.util.module_from_spec(specification)
specification.loader.exec_module(theirs)


def made(name: str, **options: Any) -> type:
    """Their tests for one of our models."""

    def get_model(self: object) -> SatfRecommender:
        return SatfRecommender(**options)

    return type(name, (unittest.TestCase, theirs.RecommenderBaseTestMixin), {"_get_model": get_model})


TestDSatf = made("TestDSatf")
TestEase = made("TestEase", model="ease", regularization=1.0)
TestPureSvd = made("TestPureSvd", model="pure-svd", rank=2)
TestVmisKnn = made("TestVmisKnn", model="vmis-knn")
TestTransitions = made("TestTransitions", model="transitions")
