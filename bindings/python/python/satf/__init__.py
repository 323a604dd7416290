"""Next-item recommendation from ordered histories, on a CPU.

>>> import satf
>>> model = satf.fit([("ann", "tent", 1), ("ann", "stove", 2), ("bob", "tent", 3), ("bob", "stove", 4)])
>>> model
<satf.Model d-satf: 2 items, learned from 4 events of 2 users>
"""

from __future__ import annotations

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
from satf._experiment import (
    Comparison,
    OrderReport,
    OwnModel,
    Results,
    Run,
    Split,
    Study,
    TrainingSet,
    compare,
    evaluate,
    generate,
    order_matters,
    split,
    tune,
)
from satf._model import Model, fit, load, models
from satf._satf import Table, __version__

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
