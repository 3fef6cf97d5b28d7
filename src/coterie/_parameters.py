"""Rules for the values of parameters, and the error messages that follow from them.

An estimator lists the rules of its parameters in ``_allowed``::

    _allowed = {"n_bins": Integer(2, 255), "threshold": Number(above=0, at_most=1), "cv": AnyValue(), "C": Number()}

and :func:`check_parameters` checks the values. A new parameter is a new entry in this dictionary.
"""

from __future__ import annotations

import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import get_scorer_names


class ParameterError(ValueError):
    """A parameter has an invalid value, or cannot be combined with another one.

    Attributes
    ----------
    parameters : tuple of str
        Names of the parameters in the message, for programs that have other names for them. The message begins with the first
        name or contains a parameter as ``name=value``.
    """

    def __init__(self, message: str, *parameters: str) -> None:
        super().__init__(message)
        self.parameters = parameters


class Rule(ABC):
    """Condition for the value of a parameter. Rules are combined with ``|``."""

    @abstractmethod
    def allows(self, value: Any) -> bool:
        """Return True if the rule allows a value."""

    @abstractmethod
    def description(self, value: Any = None) -> str:
        """Return the description that follows "must be"; it may depend on the rejected value."""

    def suggestion(self, value: Any) -> str:
        """Return the value that the user may have meant; empty if unknown."""
        return ""

    def __or__(self, other: Rule) -> Rule:
        return _Either(self, other)


@dataclass(frozen=True)
class Integer(Rule):
    """An integer between two limits, which are allowed."""

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
    """A finite number above (or equal to) a lower limit and at most (or below) an upper limit."""

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
    """A fraction between 0 and 1, both excluded. Integers are not fractions, because they are counts."""

    def allows(self, value: Any) -> bool:
        return isinstance(value, Real) and not isinstance(value, (bool, Integral)) and 0.0 < float(value) < 1.0

    def description(self, value: Any = None) -> str:
        return "a fraction in (0, 1)"


class OneOf(Rule):
    """One of several strings or None."""

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
    """A callable."""

    def allows(self, value: Any) -> bool:
        return callable(value)

    def description(self, value: Any = None) -> str:
        return "a function"


@dataclass(frozen=True)
class WithMethod(Rule):
    """An object, not a class, that has a method; ``kind`` describes it."""

    method: str
    kind: str

    def allows(self, value: Any) -> bool:
        return not isinstance(value, type) and callable(getattr(value, self.method, None))

    def description(self, value: Any = None) -> str:
        return self.kind


@dataclass(frozen=True)
class ListOf(Rule):
    """A nonempty list, tuple or array of values that another rule allows."""

    rule: Rule

    def allows(self, value: Any) -> bool:
        is_list = isinstance(value, (list, tuple, range)) or (hasattr(value, "__array__") and np.ndim(value) == 1)
        return is_list and len(value) > 0 and all(self.rule.allows(item) for item in value)

    def description(self, value: Any = None) -> str:
        return f"a nonempty list (each entry must be {self.rule.description()})"


class AnyValue(Rule):
    """Any value. It is checked together with the data, or by scikit-learn."""

    def allows(self, value: Any) -> bool:
        return True

    def description(self, value: Any = None) -> str:
        return "anything"


@dataclass(frozen=True)
class NotString(Rule):
    """Any value but a string or None, described by ``kind``. It is checked together with the data."""

    kind: str

    def allows(self, value: Any) -> bool:
        return value is not None and not isinstance(value, str)

    def description(self, value: Any = None) -> str:
        return self.kind


class Path(Rule):
    """A path, as a string or path object."""

    def allows(self, value: Any) -> bool:
        return isinstance(value, (str, os.PathLike)) and isinstance(os.fspath(value), str)

    def description(self, value: Any = None) -> str:
        return "a path"


class Options(Rule):
    """A dictionary with string keys, which are checked by :func:`check_options`."""

    def allows(self, value: Any) -> bool:
        return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)

    def description(self, value: Any = None) -> str:
        return "a dictionary of names and values"


class ClassWeight(Rule):
    """Weights of classes. Keys and values of a dictionary are checked together with the labels."""

    def allows(self, value: Any) -> bool:
        return value is None or isinstance(value, Mapping) or (isinstance(value, str) and value == "balanced")

    def description(self, value: Any = None) -> str:
        return "a dictionary with one weight per class, 'balanced' or None"


class Scoring(Rule):
    """The name of a score of scikit-learn, a callable, or None. Collections are rejected together with the data."""

    # Common abbreviations.
    _ABBREVIATIONS: ClassVar[Mapping[str, str]] = {
        "auc": "roc_auc",
        "auroc": "roc_auc",
        "auprc": "average_precision",
        "pr_auc": "average_precision",
        "bacc": "balanced_accuracy",
        "log_loss": "neg_log_loss",
        "logloss": "neg_log_loss",
        "mae": "neg_mean_absolute_error",
        "mcc": "matthews_corrcoef",
        "mse": "neg_mean_squared_error",
        "rmse": "neg_root_mean_squared_error",
    }

    def allows(self, value: Any) -> bool:
        if isinstance(value, str):
            return value in get_scorer_names()
        return value is None or callable(value) or isinstance(value, (list, tuple, set, dict))

    def description(self, value: Any = None) -> str:
        return "the name of a score of scikit-learn (sklearn.metrics.get_scorer_names()) or a function"

    def suggestion(self, value: Any) -> str:
        name = str(value).lower()
        return self._ABBREVIATIONS.get(name) or next(iter(get_close_matches(name, get_scorer_names(), 1)), "")


class _Either(Rule):
    """One of several rules."""

    def __init__(self, *rules: Rule) -> None:
        self.rules: list[Rule] = []
        for rule in rules:
            self.rules += rule.rules if isinstance(rule, _Either) else [rule]

    def allows(self, value: Any) -> bool:
        return any(rule.allows(value) for rule in self.rules)

    def description(self, value: Any = None) -> str:
        texts = [text for rule in self.rules for text in _alternatives(rule.description(value))]
        return f"{', '.join(texts[:-1])} or {texts[-1]}"


def _alternatives(text: str) -> list[str]:
    """Return the alternatives in the description of a rule: two for ``"True or False"``, otherwise one."""
    return text.split(" or ") if text == Boolean().description() else [text]


class _Jobs(Integer):
    """A number of workers, counted as by joblib."""

    def allows(self, value: Any) -> bool:
        return super().allows(value) and value != 0

    def description(self, value: Any = None) -> str:
        most = "" if self.maximum is None else f" and at most {self.maximum}"
        return f"a whole number other than 0 (-1: all cores){most}"


# Rules of parameters that many estimators share.
N_JOBS = _Jobs(maximum=4096) | OneOf(None)  # joblib starts all its workers immediately
VERBOSE = Boolean() | Integer(0)
N_BINS = Integer(2, 255)
# Limits of the weight of the loss and of nonzero sample weights, such that no product with the features overflows.
SMALLEST_FACTOR, LARGEST_FACTOR = 1e-20, 1e20
PENALTY = Number(at_least=SMALLEST_FACTOR, at_most=LARGEST_FACTOR)
# Weight of one part of a penalty relative to another; 0 removes the part.
SHARE = Number(at_least=0, at_most=LARGEST_FACTOR)
N_FEATURES = Integer(1) | Fraction()
N_FEATURES_OR_AUTO = N_FEATURES | OneOf("auto")


def check(name: str, value: Any, rule: Rule) -> None:
    """Raise a :class:`ParameterError` unless the rule allows a value."""
    if not rule.allows(value):
        shown = value.item() if isinstance(value, np.generic) else value
        suggestion = rule.suggestion(value)
        hint = f" Did you mean {suggestion!r}?" if suggestion else ""
        raise ParameterError(f"{name}={shown!r} must be {rule.description(value)}.{hint}", name)


def check_options(name: str, options: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Raise a ``ValueError`` unless a function has keyword-only parameters for all keys of a dictionary."""
    known = [key for key, one in inspect.signature(function).parameters.items() if one.kind is one.KEYWORD_ONLY]
    unknown = [key for key in options if key not in known]
    if unknown:
        raise ValueError(
            f"{name} has the key {unknown[0]!r}, which is not a parameter of {function.__name__}. Its parameters are "
            f"{', '.join(known)}."
        )


def check_parameters(estimator: BaseEstimator) -> None:
    """Raise a :class:`ParameterError` unless the rules of an estimator allow all its parameters."""
    table: Mapping[str, Rule] = estimator._allowed
    for name, value in estimator.get_params(deep=False).items():
        if name in table:  # a user's subclass may have more parameters
            check(name, value, table[name])


def read_size(text: str, name: str = "") -> int:
    """Return the number of bytes for text such as ``500M``; ``name`` is the option or parameter for error messages.

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
        raise ValueError(f"{name} {text!r} is not a size of memory. Use a value such as 500M or 4G.".lstrip()) from None
    if size < 1:
        raise ValueError(f"{name} {text!r} is too little memory. Use a value such as 500M or 4G.".lstrip())
    return size
