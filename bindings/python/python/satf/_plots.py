"""Pictures, through matplotlib if it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from satf._errors import ConfigError, SatfError
from satf._frames import is_installed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from satf._results import Results
    from satf._model import Model

_COLOUR = "#3465a4"


def _axes(ax: Axes | None) -> Any:
    if ax is not None:
        return ax
    if not is_installed("matplotlib"):
        raise SatfError("pictures need matplotlib, which is not installed; hint: pip install matplotlib")
    import matplotlib.pyplot as plt

    return plt.subplots()[1]


def plot_attention(model: Model, ax: Axes | None) -> Axes:
    """What an item of a history counts by its lag."""
    weights = model.attention
    axes: Any = _axes(ax)
    axes.plot(range(len(weights)), weights, color=_COLOUR, marker="o" if len(weights) <= 60 else None, markersize=3)
    axes.set_xlabel("lag (0 = newest item)")
    axes.set_ylabel("weight")
    axes.set_title(f"{model.name}: weight of an item by its lag")
    drawn: Axes = axes
    return drawn


def plot_results(results: Results, metric: str | None, ax: Axes | None) -> Axes:
    """Models side by side, with 95 % intervals."""
    names = list(next(iter(results.values())).metrics)
    metric = metric or names[0]
    if metric not in names:
        raise ConfigError(f"metric={metric!r}: expected one of {', '.join(names)}")
    labels = list(results)
    values = [results[label].metrics[metric] for label in labels]
    errors = [1.96 * (results[label].errors[metric] or 0.0) for label in labels]
    axes: Any = _axes(ax)
    places = list(range(len(labels)))[::-1]
    axes.barh(places, values, xerr=errors, color=_COLOUR, ecolor="#2e3436", capsize=3)
    axes.set_yticks(places, labels)
    axes.set_xlabel(f"{metric} (95 % interval)")
    drawn: Axes = axes
    return drawn
