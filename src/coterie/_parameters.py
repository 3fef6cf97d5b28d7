"""What a parameter may be: small rules, one table of them an estimator, and the message that they make.

An estimator lists its parameters in ``_allowed``, name by name::

    _allowed = {"n_bins": Whole(2, 255), "threshold": Number(above=0, at_most=1), "cv": Anything(), "C": Number()}

and :func:`check_parameters` compares. A new parameter is a line there.
"""

from __future__ import annotations

import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator


class Rule(ABC):
    """What a parameter may be. Rules are joined by ``|``."""

    @abstractmethod
    def allows(self, value: Any) -> bool:
        """Whether a value will do."""

    @abstractmethod
    def description(self, value: Any = None) -> str:
        """What it must be, after "must be"; may depend on the value that will not do."""

    def __or__(self, other: Rule) -> Rule:
        return _Either(self, other)


@dataclass(frozen=True)
class Integer(Rule):
    """A whole number between two limits."""

    minimum: int | None = None
    maximum: int | None = None

    def allows(self, value: Any) -> bool:
        if not isinstance(value, Integral) or isinstance(value, (bool, np.bool_)):
            return False
        number = int(value)
        return (self.minimum is None or number >= self.minimum) and (self.maximum is None or number <= self.maximum)

    def description(self, value: Any = None) -> str:
        least = "" if self.minimum is None else f" of at least {self.minimum}"
        most = "" if self.maximum is None else f" and at most {self.maximum}"
        return f"a whole number{least}{most}"


@dataclass(frozen=True)
class Number(Rule):
    """A finite number above (or equal to) one limit and at most (or below) another."""

    above: float = 0.0
    at_most: float = np.inf
    at_least: float | None = None
    below: float = np.inf

    def allows(self, value: Any) -> bool:
        if not isinstance(value, Real) or isinstance(value, (bool, np.bool_)) or not np.isfinite(float(value)):
            return False
        enough = float(value) > self.above if self.at_least is None else float(value) >= self.at_least
        return enough and float(value) <= self.at_most and float(value) < self.below

    def description(self, value: Any = None) -> str:
        if isinstance(value, float) and np.isinf(value) and value > 0:
            return "finite"
        least = f"above {self.above:g}" if self.at_least is None else f"of at least {self.at_least:g}"
        most = "" if self.at_most == np.inf else f" and at most {self.at_most:g}"
        return f"a number {least}{most}" + ("" if self.below == np.inf else f" and below {self.below:g}")


@dataclass(frozen=True)
class Fraction(Rule):
    """A part of all, neither none nor all; whole numbers are numbers of something instead."""

    def allows(self, value: Any) -> bool:
        return isinstance(value, Real) and not isinstance(value, (bool, Integral)) and 0.0 < float(value) < 1.0

    def description(self, value: Any = None) -> str:
        return "a fraction in (0, 1)"


class OneOf(Rule):
    """One of some words or None."""

    def __init__(self, *choices: str | None) -> None:
        self.choices = choices

    def allows(self, value: Any) -> bool:
        return (value is None and None in self.choices) or (isinstance(value, str) and value in self.choices)

    def description(self, value: Any = None) -> str:
        listed = ", ".join(repr(choice) for choice in self.choices)
        return listed if len(self.choices) == 1 else f"one of {listed}"


class Boolean(Rule):
    """True or False."""

    def allows(self, value: Any) -> bool:
        return isinstance(value, (bool, np.bool_)) or (isinstance(value, Integral) and value in (0, 1))

    def description(self, value: Any = None) -> str:
        return "True or False"


class Function(Rule):
    """Something that can be called."""

    def allows(self, value: Any) -> bool:
        return callable(value)

    def description(self, value: Any = None) -> str:
        return "a function"


@dataclass(frozen=True)
class ListOf(Rule):
    """A list of values (or an array, a tuple) to choose from, with at least one; each of them is what another rule allows."""

    rule: Rule

    def allows(self, value: Any) -> bool:
        is_list = isinstance(value, (list, tuple, range)) or (hasattr(value, "__array__") and np.ndim(value) == 1)
        return is_list and len(value) > 0 and all(self.rule.allows(item) for item in value)

    def description(self, value: Any = None) -> str:
        return f"a list with one or more entries, each {self.rule.description()}"


class AnyValue(Rule):
    """A value that is checked with the data, or by scikit-learn."""

    def allows(self, value: Any) -> bool:
        return True

    def description(self, value: Any = None) -> str:
        return "anything"


@dataclass(frozen=True)
class NotString(Rule):
    """Anything but a word or None: what ``kind`` says, which is checked with the data."""

    kind: str

    def allows(self, value: Any) -> bool:
        return value is not None and not isinstance(value, str)

    def description(self, value: Any = None) -> str:
        return self.kind


class Path(Rule):
    """Where a file is, as text or as a path object."""

    def allows(self, value: Any) -> bool:
        return isinstance(value, (str, os.PathLike)) and isinstance(os.fspath(value), str)

    def description(self, value: Any = None) -> str:
        return "a path"


class Options(Rule):
    """A dictionary of names and values; which names there are is checked by :func:`check_options`."""

    def allows(self, value: Any) -> bool:
        return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)

    def description(self, value: Any = None) -> str:
        return "a dictionary of names and values"


class _Either(Rule):
    """One of several rules."""

    def __init__(self, *rules: Rule) -> None:
        self.rules: list[Rule] = []
        for rule in rules:
            self.rules += rule.rules if isinstance(rule, _Either) else [rule]

    def allows(self, value: Any) -> bool:
        return any(rule.allows(value) for rule in self.rules)

    def description(self, value: Any = None) -> str:
        *others, last = (rule.description(value) for rule in self.rules)
        return f"{', '.join(others)} or {last}"


class _Jobs(Integer):
    """A number of workers, as joblib counts them."""

    def allows(self, value: Any) -> bool:
        return super().allows(value) and value != 0

    def description(self, value: Any = None) -> str:
        most = "" if self.maximum is None else f" and at most {self.maximum}"
        return f"a whole number other than 0 (-1: all cores){most}"


# Parameters that many estimators have.
N_JOBS = _Jobs(maximum=4096) | OneOf(None)  # joblib starts all its workers at once
VERBOSE = Boolean() | Integer(0)
N_BINS = Integer(2, 255)
# What the loss is multiplied by, and sample weights that are not 0: so that no product with the features overflows.
SMALLEST_FACTOR, LARGEST_FACTOR = 1e-20, 1e20
PENALTY = Number(at_least=SMALLEST_FACTOR, at_most=LARGEST_FACTOR)
# What one part of a penalty counts for, relative to another: 0 is none of it.
SHARE = Number(at_least=0, at_most=LARGEST_FACTOR)
N_FEATURES = Integer(1) | Fraction()
N_FEATURES_OR_AUTO = N_FEATURES | OneOf("auto")


def check(name: str, value: Any, rule: Rule) -> None:
    """Raise a ``ValueError`` unless a value is what its rule allows."""
    if not rule.allows(value):
        shown = value.item() if isinstance(value, np.generic) else value
        raise ValueError(f"{name}={shown!r} must be {rule.description(value)}.")


def check_options(name: str, options: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Raise a ``ValueError`` unless a parameter holds only what a function takes by name."""
    known = [key for key, one in inspect.signature(function).parameters.items() if one.kind is one.KEYWORD_ONLY]
    unknown = [key for key in options if key not in known]
    if unknown:
        raise ValueError(f"{name} has {unknown[0]!r}, which {function.__name__} does not take; it takes {', '.join(known)}.")


def check_parameters(estimator: BaseEstimator) -> None:
    """Raise a ``ValueError`` unless all parameters of an estimator are what its table allows."""
    table: Mapping[str, Rule] = estimator._allowed
    for name, value in estimator.get_params(deep=False).items():
        if name in table:  # a subclass of a user's may have more
            check(name, value, table[name])


def read_size(text: str) -> int:
    """Bytes from text such as ``500M``.

    Examples
    --------
    >>> from coterie._parameters import read_size
    >>> read_size("4G"), read_size("1.5k"), read_size("100")
    (4294967296, 1536, 100)
    """
    units = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
    number = text.strip().lower().removesuffix("b").rstrip("kmgt")
    unit = text.strip().lower().removesuffix("b")[len(number) :]
    try:
        size = int(float(number) * units[unit])
    except (KeyError, ValueError, OverflowError):
        raise ValueError(f"{text!r} is no size; write 500M or 4G.") from None
    if size < 1:
        raise ValueError(f"{text!r} is too little memory; write 500M or 4G.")
    return size
