"""Who takes part in a comparison: selectors with a name, a way to ask for a number of features, and a seed."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

import joblib
from sklearn.base import clone

from coterie.filters.selector import FilterSelector
from coterie.methods import METHODS, REGRESSION, Method, method_named, methods_for
from coterie.persistence.names import stable_name

# Quick ones of every kind.
DEFAULT = ("gdm", "fgm", "mrmr", "fcbf", "l1-svm", "svm-rfe", "grm", "fisher")
DEFAULT_FOR_NUMBERS = ("gdm", "fgm", "mrmr", "lasso", "grm", "correlation")
_SIZE_PARAMETERS = ("n_features_to_select", "k", "max_features")


class Contender(NamedTuple):
    """A method that takes part.

    Attributes
    ----------
    name : str
        Its name in the table.
    selector : estimator
        Not fitted.
    size : str
        The parameter that says how many features to select.
    nested : {"", "support", "ranking"}
        Whether one fit serves all numbers of features; see :class:`coterie.methods.Method`.
    known : bool
        Whether it is a method of the package, which may be warmed up.
    """

    name: str
    selector: Any
    size: str
    nested: str
    known: bool

    @property
    def digest(self) -> str:
        """What tells it from a selector of other parameters."""
        return estimator_digest(self.selector, without=self.size)


def estimator_digest(estimator: Any, without: str | None = None) -> str:
    """Digest of an estimator's class and parameters, the same in every process."""
    parameters = {name: value for name, value in estimator.get_params(deep=True).items() if name != without}
    plain = sorted((name, joblib.hash(value)) for name, value in parameters.items())
    module, _, name = stable_name(type(estimator)).rpartition(".")
    content = f"{module}:{name} {plain}"
    return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()


def default_methods(task: str) -> list[str]:
    """Names of quick methods for a task."""
    return list(DEFAULT_FOR_NUMBERS if task == "regression" else DEFAULT)


def read_contenders(methods: Any, seed: int, task: str = "classification") -> list[Contender]:
    """The contenders in their order, from names, selectors, or a mapping of names to either."""
    if methods is None:
        methods = default_methods(task)
    elif isinstance(methods, str):
        methods = list(methods_for(task)) if methods.strip().lower() == "all" else [methods]
    elif hasattr(methods, "fit"):
        methods = [methods]
    pairs: list[tuple[str, Any]] = []
    if isinstance(methods, Mapping):
        pairs = [(str(name), method) for name, method in methods.items()]
    else:
        for method in methods:
            name = method if isinstance(method, str) else type(method).__name__
            pairs.append((_free_name(str(name).strip(), [taken for taken, _ in pairs], isinstance(method, str)), method))
    if not pairs:
        raise ValueError(f"methods is empty; name at least one of {', '.join(methods_for(task))}, or give selectors.")
    return [_contender(name, method, seed, task) for name, method in pairs]


def _free_name(name: str, taken: list[str], named: bool) -> str:
    if name not in taken:
        return name
    if named:
        raise ValueError(f"methods names {name!r} twice.")
    return next(f"{name} {number}" for number in range(2, len(taken) + 3) if f"{name} {number}" not in taken)


def _contender(name: str, method: Any, seed: int, task: str) -> Contender:
    selector = selector_named(method, task=task) if isinstance(method, str) else _checked(name, method)
    parameters = selector.get_params(deep=True)
    size = next((parameter for parameter in _SIZE_PARAMETERS if parameter in parameters), None)
    if size is None:
        raise ValueError(
            f"The selector {name!r} ({type(selector).__name__}) has no parameter {', '.join(_SIZE_PARAMETERS[:-1])} or "
            f"{_SIZE_PARAMETERS[-1]}, so it cannot be asked for a number of features. Give it one."
        )
    unseeded = [key for key, value in parameters.items() if key.split("__")[-1] == "random_state" and value is None]
    selector.set_params(**dict.fromkeys(unseeded, seed))
    known = type(selector).__module__.startswith("coterie.")
    return Contender(name, selector, size, "ranking" if isinstance(selector, FilterSelector) else _nested(selector), known)


def selector_named(name: str, *, task: str = "classification", **parameters: Any) -> Any:
    """The selector of a method of the package for a task, with some parameters of its class or score set.

    Examples
    --------
    >>> from coterie.comparison.contenders import selector_named
    >>> selector_named("fgm", C=10.0)
    GroupDiscoveryClassifier(C=10.0, correlation=None)
    >>> selector_named("relieff", n_neighbors=7)
    FilterSelector(parameters={'n_neighbors': 7}, score_func='relieff')
    >>> selector_named("gdm", task="regression")
    GroupDiscoveryRegressor()
    """
    method = method_named(name, task)
    target = method.load()
    if not inspect.isclass(target):
        return FilterSelector(name.strip().lower().replace("-", "_"), parameters=parameters or None)
    known = inspect.signature(target).parameters
    for parameter in parameters:
        if parameter not in known:
            raise ValueError(f"{name} has no parameter {parameter}; it has {', '.join(known)}.")
    return target(**{**method.settings, **parameters})


def _checked(name: str, selector: Any) -> Any:
    if not name:
        raise ValueError("A method has no name.")
    if inspect.isclass(selector) or not (hasattr(selector, "fit") and hasattr(selector, "get_support")):
        raise ValueError(
            f"The method {name!r} is {selector!r}, which is neither a selector with fit and get_support nor the name of a "
            f"method ({', '.join(METHODS)})."
        )
    try:
        return clone(selector)
    except TypeError as error:
        raise ValueError(f"The selector {name!r} cannot be cloned: {error}") from error


def _nested(selector: Any) -> str:
    """How one fit of this selector serves all numbers of features, if it does."""
    for method in (*METHODS.values(), *REGRESSION.values()):
        if _is_of(method, selector):
            parameters = selector.get_params(deep=False)
            holds = all(_same(parameters.get(name), value) for name, value in method.nested_if.items())
            return method.nested if holds else ""
    return ""


def _is_of(method: Method, selector: Any) -> bool:
    return method.place == f"{type(selector).__module__}:{type(selector).__name__}"


def _same(given: Any, value: Any) -> bool:
    return given is value or (isinstance(given, (str, int, float)) and not isinstance(given, bool) and given == value)
