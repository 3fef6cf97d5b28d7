"""Options of what the selector is given by name, and what does not go together."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from coterie._parameters import check_options
from coterie.methods import SCORES
from coterie.redundancy.alm import solve_alm
from coterie.redundancy.measures import mutual_information, sparse_representation

# Measures that are computed from the columns of the candidates, by name.
MEASURES: dict[str, Callable[..., np.ndarray]] = {
    "mutual_info": mutual_information,
    "sparse_representation": sparse_representation,
}


def check_given_options(selector: Any) -> None:
    """Refuse options that what they are for does not take."""
    if selector.solution == "set":
        for name, given in (("groups", selector.groups is not None), ("method='alm'", selector.method == "alm")):
            if given:
                raise ValueError(f"{name} is for solution='weights'; a set is chosen without.")
    for name, chosen, known in (
        ("score_parameters", selector.score_func, {name: score.load for name, score in SCORES.items()}),
        ("redundancy_parameters", selector.redundancy, {name: partial(_itself, one) for name, one in MEASURES.items()}),
        ("method_parameters", selector.method, {"alm": partial(_itself, solve_alm)}),
    ):
        given = getattr(selector, name)
        if not given:
            continue
        if not isinstance(chosen, str) or chosen not in known:
            shown = repr(chosen) if isinstance(chosen, str) else "something of your own"
            raise ValueError(f"{name} are for {', '.join(map(repr, known))}; {shown} takes none.")
        check_options(name, given, known[chosen]())


def _itself(value: Any) -> Any:
    return value
