"""Histories whose order nobody knows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def places_in_ties(num_items: int, seed: int) -> npt.NDArray[np.int64]:
    """For every item where it stands among others of the same time: a seeded random order.

    Matrices and vocabularies have items in the order of their numbers, which no user followed. A model that reads order must not read that one.
    """
    return np.random.default_rng(seed).permutation(num_items)
