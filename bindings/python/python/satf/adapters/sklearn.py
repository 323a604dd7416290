"""An estimator of scikit-learn: models of satf in ``GridSearchCV``, ``clone`` and whatever else speaks that language.

>>> from sklearn.model_selection import GridSearchCV, TimeSeriesSplit  # doctest: +SKIP
>>> from satf.adapters.sklearn import SatfEstimator  # doctest: +SKIP
>>> grid = {"keys__regularization": [50.0, 200.0]}  # doctest: +SKIP
>>> search = GridSearchCV(SatfEstimator("ease"), grid, cv=TimeSeriesSplit(3))  # doctest: +SKIP
>>> search.fit(events.sort_values("timestamp"))  # doctest: +SKIP
"""

# mypy: disable-error-code="misc, import-untyped, import-not-found, unused-ignore"
# pyright: reportMissingImports=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import satf
from satf.adapters._missing import missing

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_array, check_is_fitted
except ImportError as error:
    raise missing("satf.adapters.sklearn", "scikit-learn", error) from error

_KEYS = "keys__"
#: Lists asked for in one call while events are scored.
_EVENTS_AT_ONCE = 10_000


class SatfEstimator(BaseEstimator):
    """A model of satf as an estimator. A sample is an event.

    ``X`` is a frame of events whose columns are recognised by name or given as ``columns``, or an array whose first columns are users, items and times
    (with only two, the order of the rows is the time). ``y`` is ignored.

    ``keys`` are the keys of the model; a search names one ``keys__rank``, and :meth:`set_params` takes it so. ``k`` is the length of the
    lists that :meth:`score` judges. Cut by time (``TimeSeriesSplit`` on events in the order of time), not at random: at random, a model
    learns from the future what it is asked about the past.

    After :meth:`fit`, ``model_`` is the :class:`satf.Model` and ``log_`` the :class:`satf.Log` that it learned from.
    """

    def __init__(
        self,
        model: str = "d-satf",
        *,
        keys: Mapping[str, Any] | None = None,
        ties: str = "shuffle",
        seed: int = 0,
        k: int = 10,
        columns: Mapping[str, str] | None = None,
        memory: int | str | None = None,
        threads: int | None = None,
    ) -> None:
        self.model = model
        self.keys = keys
        self.ties = ties
        self.seed = seed
        self.k = k
        self.columns = columns
        self.memory = memory
        self.threads = threads

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with ``deep`` also every key of the model that was given, as ``keys__NAME``."""
        parameters: dict[str, Any] = super().get_params(deep=False)
        if deep and isinstance(self.keys, Mapping):
            parameters.update({_KEYS + name: value for name, value in self.keys.items()})
        return parameters

    def set_params(self, **params: Any) -> SatfEstimator:
        """Sets parameters; ``keys__NAME`` sets one key of the model and leaves the others."""
        plain = {name: value for name, value in params.items() if not name.startswith(_KEYS)}
        super().set_params(**plain)
        keys = {name[len(_KEYS) :]: value for name, value in params.items() if name.startswith(_KEYS)}
        if keys:
            self.keys = {**self._keys(), **keys}
        return self

    def fit(self, X: Any, y: Any = None) -> SatfEstimator:
        """Learns from events."""
        log = self._read(X, reset=True)
        model = satf.fit(
            log,
            self.model,
            ties=self.ties,
            seed=self.seed,
            memory=self.memory,
            keep_histories=False,
            threads=self.threads,
            progress=False,
            **self._keys(),
        )
        self.log_, self.model_ = log, model
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """NDCG@k of events that came after those of :meth:`fit`; higher is better.

        Each event is predicted from its user's events of the fit and from earlier ones of ``X``; all items are ranked but those that the user has, so
        an item for the second time cannot be hit. Events of items that the model does not know, and those before which their user has nothing, are
        not counted. If none is left, the score is NaN. It is what :func:`satf.evaluate` says of the same cut, but for events with equal times: here
        they stand in the order of their rows.
        """
        check_is_fitted(self)
        histories, targets = self._events(self._read(X, reset=False))
        gains = []
        for start in range(0, len(targets), _EVENTS_AT_ONCE):
            part = slice(start, start + _EVENTS_AT_ONCE)
            table = self.model_.recommend(histories[part], self.k, output="table", threads=self.threads, progress=False)
            of = np.asarray(table.column("user_id"))
            hit = np.asarray(table.column("item_id")) == np.asarray(targets[part])[of]
            gains.append(1.0 / np.log2(np.asarray(table.column("rank"))[hit] + 1.0))
        return float(np.concatenate(gains).sum() / len(targets)) if targets else float("nan")

    def recommend(self, users: Any = None, k: int | None = None, **options: Any) -> Any:
        """What comes next for users that it learned from (None: all of them), or after any history: :meth:`satf.Model.recommend`."""
        check_is_fitted(self)
        if users is None or _is_flat(users):
            options.setdefault("log", self.log_)
        return self.model_.recommend(users, self.k if k is None else k, **options)

    def _keys(self) -> dict[str, Any]:
        if self.keys is not None and not isinstance(self.keys, Mapping):
            raise satf.ConfigError(f"keys={self.keys!r}: expected a dict of the model's keys")
        return dict(self.keys or {})

    def _events(self, log: satf.Log) -> tuple[list[list[Any]], list[Any]]:
        """Histories and targets: every event of a log that can be scored."""
        known = set(self.model_.items)
        past: dict[Any, list[Any]] = {}
        for user, item in _rows(self.log_):
            past.setdefault(user, []).append(item)
        histories, targets = [], []
        for user, item in _rows(log):
            history = past.setdefault(user, [])
            if item in known:
                if history:
                    histories.append(list(history))
                    targets.append(item)
                history.append(item)
        return histories, targets

    def _read(self, X: Any, reset: bool) -> satf.Log:
        if isinstance(X, satf.Log):
            return X
        # Some sparse matrices look like dicts. They are refused below, in the words of scikit-learn.
        if not hasattr(X, "tocsr") and (hasattr(X, "columns") or isinstance(X, Mapping)):
            return satf.read_log(X, columns=self.columns, threads=self.threads, progress=False)
        # Ids are integers or strings, and times may be either: types are kept.
        array = check_array(X, dtype=None, estimator=self, input_name="X")
        if reset:
            self.n_features_in_ = array.shape[1]
        elif array.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {array.shape[1]} features, but SatfEstimator is expecting {self.n_features_in_} features as input")
        return satf.read_log(_columns(array), order_is_time=array.shape[1] == 2, threads=self.threads, progress=False)

    def __getstate__(self) -> dict[str, Any]:
        # A log is native memory; its columns can be pickled.
        state: dict[str, Any] = dict(super().__getstate__())
        if "log_" in state:
            table = state["log_"].to_frame("table")
            columns = {name: table.column(name) for name in table.column_names}
            state["log_"] = columns, state["log_"].has_times
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "log_" in state:
            columns, has_times = state["log_"]
            if not has_times:
                columns.pop("timestamp", None)
            log = satf.read_log(columns, time_unit="microseconds" if has_times else None, order_is_time=not has_times)
            state = {**state, "log_": log}
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.target_tags.required = False
        return tags


def _columns(array: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """The first columns of an array, whole numbers as integers."""
    if array.shape[1] < 2:
        raise ValueError(f"X has {array.shape[1]} feature(s), expected at least 2: users and items (and times)")
    names = ("user_id", "item_id", "timestamp")[: array.shape[1]]
    return {name: _ids(name, array[:, at]) for at, name in enumerate(names)}


def _ids(name: str, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if column.dtype.kind != "f":
        return column
    if not np.array_equal(column, np.rint(column)):
        wrong = column[column != np.rint(column)][0]
        raise ValueError(f"X: {name} {wrong!r} is not a whole number; expected integers or strings")
    return column.astype(np.int64)


def _rows(log: satf.Log) -> list[tuple[Any, Any]]:
    """Users and items in the order of time, equal times in that of the rows."""
    table = log.to_frame("table")
    order = np.argsort(np.asarray(table.column("timestamp")), kind="stable")
    users, items = (np.asarray(table.column(name), dtype=object)[order].tolist() for name in ("user_id", "item_id"))
    return list(zip(users, items))


def _is_flat(users: Any) -> bool:
    first = next(iter(users), None) if hasattr(users, "__iter__") and not isinstance(users, (str, Mapping)) else None
    return first is not None and (isinstance(first, str) or not hasattr(first, "__iter__"))
