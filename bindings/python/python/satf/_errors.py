"""Exceptions and warnings of the package."""

from __future__ import annotations


class SatfError(Exception):
    """Whatever satf raises is one of these."""


class DataError(SatfError, ValueError):
    """Events or histories that cannot be used: the message names the row, the column, the value and what was expected."""


class MissingFileError(DataError, FileNotFoundError):
    """A file that is not there."""


class ConfigError(SatfError, ValueError):
    """A model, a key or an option that does not exist, or a value it cannot have. All faults are named at once."""


class FitError(SatfError, RuntimeError):
    """A model that cannot learn from this log: too little data, too little memory, numbers that went wrong."""


class ModelFileError(SatfError, OSError):
    """A model file that cannot be read or written."""


class RecommendError(SatfError, ValueError):
    """What a model cannot answer."""


class UnknownItemError(RecommendError, KeyError):
    """An item that the model does not know, where an answer needs it."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ExperimentError(SatfError, ValueError):
    """An experiment that cannot be made: a log that cannot be cut, a model that cannot be scored."""


class TuneError(SatfError, RuntimeError):
    """A search that cannot begin or go on."""


class InternalError(SatfError, RuntimeError):
    """A fault of satf itself. Please report it."""


class SatfWarning(UserWarning):
    """Something that may mislead, or was chosen because nobody said otherwise."""
