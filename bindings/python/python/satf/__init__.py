"""Next-item recommendation from ordered histories, on a CPU.

>>> import satf
>>> model = satf.fit([("ann", "tent", 1), ("ann", "stove", 2), ("bob", "tent", 3), ("bob", "stove", 4)])
>>> model
<satf.Model d-satf: 2 items, learned from 4 events of 2 users>
"""

from __future__ import annotations

from satf._compare import Comparison, compare
from satf._data import Log, read_log
from satf._errors import (
    ConfigError,
    DataError,
    ExperimentError,
    FitError,
    InternalError,
    MissingFileError,
    ModelFileError,
    RecommendError,
    SatfError,
    SatfWarning,
    TuneError,
    UnknownItemError,
)
from satf._evaluate import OwnModel, evaluate
from satf._generate import generate
from satf._model import Model, fit, load, models
from satf._order import OrderReport, order_matters
from satf._results import Results
from satf._run import Run
from satf._satf import Table, __version__
from satf._split import Split, TrainingSet, split
from satf._tune import Study, tune

__all__ = [
    "Comparison",
    "ConfigError",
    "DataError",
    "ExperimentError",
    "FitError",
    "InternalError",
    "Log",
    "MissingFileError",
    "Model",
    "ModelFileError",
    "OrderReport",
    "OwnModel",
    "RecommendError",
    "Results",
    "Run",
    "SatfError",
    "SatfWarning",
    "Split",
    "Study",
    "Table",
    "TrainingSet",
    "TuneError",
    "UnknownItemError",
    "__version__",
    "compare",
    "evaluate",
    "fit",
    "generate",
    "load",
    "models",
    "order_matters",
    "read_log",
    "split",
    "tune",
]
