"""scikit-learn's `check_estimator`, against the estimator: every check applies."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import check_estimator

from satf.adapters.sklearn import SatfEstimator

@pytest.mark.parametrize("model", ["d-satf", "transitions"])
def test_check_estimator(model: str) -> None:
    # All apply: ids are categories (a tag says so), so the checks are made on whole numbers.
    outcomes = check_estimator(SatfEstimator(model), on_fail=None, on_skip=None)
    by_status: dict[str, list[str]] = {}
    for outcome in outcomes:
        why = "" if outcome["exception"] is None else f" ({outcome['exception']})"
        by_status.setdefault(outcome["status"], []).append(outcome["check_name"] + why)
    for status, names in by_status.items():
        print(f"{model}, {status}: {len(names)}: {', '.join(sorted(names))}")
    assert by_status.keys() <= {"passed", "skipped"}, by_status
    assert len(by_status["passed"]) >= 35
