"""Encoding of parameters and fitted attributes as JSON and arrays, and decoding.

Numbers, text, None, lists and dictionaries with text keys are plain JSON. Anything else is an object whose key ``"$"`` states
its kind. Arrays are stored in pools, one flat array per value type, so that a model with thousands of small arrays has few
members.

Decoding creates only the following:

- NumPy arrays and scalars, containers and paths;
- records of Coterie (data classes and named tuples);
- other objects of Coterie, without calling their constructors;
- estimators of Coterie and scikit-learn from their parameters, and splitters;
- public functions of Coterie by name.

Classes of Coterie have the names of :mod:`coterie.persistence.names`, independent of their modules. Decoded data are not
larger than the file: each value of a pool is used at most once, names partition their text, and the number of objects equals
that of their shape.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import itertools
import math
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator, BaseShuffleSplit
from sklearn.utils import Bunch

from coterie.persistence.fitted import check_attribute_names, check_fitted, check_size, is_fitted_name
from coterie.persistence.names import name_of, named

KIND = "$"
_MAX_DEPTH = 50
# Maximum number of tuples and records among the keys of a dictionary or set. Unlike those of text, their hashes are the same
# in every process, so a file can have keys that all collide, and building the dictionary takes quadratic time.
_MAX_COMPOSITE_KEYS = 1000
# Name and number of words of the state of NumPy's Mersenne twister.
_TWISTER = ("MT19937", 624)
_SIMPLE_KEYS = (str, bytes, int, float, np.integer, np.floating, np.bool_, type(None))


class Encoder:
    """Encoder of values as JSON, which collects their arrays."""

    def __init__(self) -> None:
        self._parts: dict[str, list[np.ndarray]] = {}
        self._lengths: dict[str, int] = {}
        self._place: list[str] = []

    def pooled(self) -> dict[str, np.ndarray]:
        """Return the pooled arrays, one per value type."""
        return {name: np.concatenate(parts) for name, parts in self._parts.items()}

    def encode(self, value: Any, place: str) -> Any:
        """Encode a value as JSON. ``place`` is its name in error messages."""
        with self._inside(place):
            return self._encode(value)

    @contextmanager
    def _inside(self, place: str) -> Iterator[None]:
        if len(self._place) >= _MAX_DEPTH:
            raise TypeError(f"{self._place[0]} is nested too deeply to be saved.")
        self._place.append(place)
        yield
        self._place.pop()

    def _encode(self, value: Any) -> Any:
        if value is None or (isinstance(value, (bool, str)) and type(value) in (bool, str)):
            return value
        if type(value) is int:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {KIND: "float", "value": repr(value)}
        if isinstance(value, np.ndarray):
            return self._encode_array(value)
        if isinstance(value, np.generic):
            return {KIND: "scalar", "value": self._encode_array(np.asarray(value))}
        if isinstance(value, (dict, set, frozenset)) and (reason := unsafe_keys(value)) is not None:
            raise self._unsupported(f"a {type(value).__name__} with {reason}")
        if type(value) in (list, tuple, set, frozenset):
            items = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
            encoded = [self.encode(item, f"[{i}]") for i, item in enumerate(items)]
            return encoded if type(value) is list else {KIND: type(value).__name__, "items": encoded}
        if type(value) in (dict, Bunch):
            items = [[self.encode(k, "key"), self.encode(v, f"[{k!r}]")] for k, v in value.items()]
            return {KIND: "dict" if type(value) is dict else "bunch", "items": items}
        return self._encode_object(value)

    def _encode_array(self, array: np.ndarray) -> Any:
        if array.dtype.kind == "O":
            return self._encode_objects(array)
        if array.dtype.kind not in "biufcSU" or array.dtype.itemsize == 0:
            raise self._unsupported(f"an array of type {array.dtype}")
        order: Literal["C", "F"] = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        flat = np.ravel(array, order=order)
        name = array.dtype.newbyteorder("=").name
        start = self._lengths.get(name, 0)
        self._parts.setdefault(name, []).append(flat.astype(array.dtype.newbyteorder("="), copy=False))
        self._lengths[name] = start + len(flat)
        return {KIND: "array", "pool": name, "start": start, "shape": list(array.shape), "order": order}

    def _encode_objects(self, array: np.ndarray) -> Any:
        """Encode strings as concatenated bytes with their ends, and anything else as a list."""
        items = array.ravel().tolist()
        if array.ndim == 1 and all(type(item) is str for item in items):
            pieces = [item.encode("utf-8", "surrogatepass") for item in items]
            text = np.frombuffer(b"".join(pieces), dtype=np.uint8)
            ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
            return {KIND: "names", "text": self._encode_array(text), "ends": self._encode_array(ends)}
        return {KIND: "objects", "shape": list(array.shape), "items": [self._encode(item) for item in items]}

    def _encode_object(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, Path):
            return {KIND: "path", "value": str(value)}
        if kind is np.random.RandomState:
            return {KIND: "random_state", "state": self._encode(value.get_state())}
        if dataclasses.is_dataclass(value) and _is_coterie(kind):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
            return self._record(kind, fields)
        if isinstance(value, tuple) and hasattr(value, "_asdict") and _is_coterie(kind):
            return self._record(kind, value._asdict())
        if kind.__name__ == "FeatureGroups" and _is_coterie(kind):
            return {KIND: "groups", "items": [self.encode(group, f"[{i}]") for i, group in enumerate(value)]}
        if isinstance(value, BaseEstimator) and (_is_coterie(kind) or _is_sklearn(kind)):
            return self.encode_estimator(value)
        if isinstance(value, (BaseCrossValidator, BaseShuffleSplit)) and _is_sklearn(kind):
            names = [name for name in inspect.signature(kind.__init__).parameters if name != "self" and hasattr(value, name)]
            return self._record(kind, {name: getattr(value, name) for name in names}, "splitter")
        if isinstance(value, types.FunctionType) and (name := name_of(value)) is not None:
            return {KIND: "function", "type": name}
        if _is_plain(kind) and hasattr(value, "__dict__"):
            return self._record(kind, vars(value), "object")
        raise self._unsupported(
            f"{'a function' if callable(value) else 'an object'} of type {kind.__module__}.{kind.__qualname__}"
        )

    def encode_estimator(self, estimator: BaseEstimator) -> dict[str, Any]:
        """Encode class, parameters and fitted attributes of an estimator. One of scikit-learn must not be fitted."""
        parameters = estimator.get_params(deep=False)
        # Callbacks of scikit-learn, routing requests and custom attributes are not part of the model.
        others = {k: v for k, v in vars(estimator).items() if k not in parameters and is_fitted_name(k)}
        # Values per feature that are held by the workers of a cluster are saved unless there are too many.
        saved = {k: v.for_saving() if hasattr(v, "for_saving") else v for k, v in others.items()}
        others = {k: v for k, v in saved.items() if v is not None or others[k] is None}
        if not _is_coterie(type(estimator)) and others:
            raise self._unsupported(f"a fitted {type(estimator).__name__} of scikit-learn")
        return {
            KIND: "estimator",
            "type": self._type(type(estimator)),
            "parameters": {name: self.encode(value, name) for name, value in parameters.items()},
            "attributes": {name: self.encode(value, name) for name, value in others.items()},
        }

    def _record(self, kind: type, fields: Mapping[str, Any], name: str = "record") -> dict[str, Any]:
        return {KIND: name, "type": self._type(kind), "fields": {k: self.encode(v, f".{k}") for k, v in fields.items()}}

    def _type(self, kind: type) -> str:
        name = name_of(kind) if _is_coterie(kind) else _public_path(kind)
        if name is None:
            raise self._unsupported(f"an object of the private type {kind.__module__}.{kind.__qualname__}")
        return name

    def _unsupported(self, what: str) -> TypeError:
        place = "".join(p if p.startswith((".", "[")) or i == 0 else f".{p}" for i, p in enumerate(self._place)) or "the model"
        return TypeError(
            f"{place} is {what}, which cannot be saved to a file that runs no code. Set it to a plain value before saving "
            f"(set_params does not change the fitted model)."
        )


class Decoder:
    """Decoder of values from JSON and arrays.

    Parameters
    ----------
    arrays : dict of str to ndarray
        Pooled arrays.
    max_features : int, optional
        Largest accepted ``n_features_in_`` of a fitted estimator, by default a limit derived from the size of the file.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], max_features: int | None = None) -> None:
        self.arrays = arrays
        self._max_features = max_features
        self._unused = {name: len(array) for name, array in arrays.items()}
        self._depth = 0
        self._in_parameters = False
        self._kinds: dict[str, Callable[[dict[str, Any]], Any]] = {
            "float": lambda v: float(v["value"]),
            "scalar": lambda v: self.decode(v["value"])[()],
            "path": lambda v: Path(v["value"]),
            "array": self._array,
            "names": self._names,
            "objects": self._objects,
            "tuple": lambda v: tuple(self._items(v)),
            "set": lambda v: set(_checked_keys(self._items(v))),
            "frozenset": lambda v: frozenset(_checked_keys(self._items(v))),
            "dict": self._dict,
            "bunch": lambda v: Bunch(**self._dict(v)),
            "groups": self._groups,
            "record": self._record,
            "splitter": self._splitter,
            "object": self._object,
            "random_state": self._random_state,
            "estimator": self.estimator,
            "function": self._function,
        }

    def decode(self, value: Any) -> Any:
        """Decode a value."""
        if not isinstance(value, (list, dict)):
            return value
        if self._depth > 3 * _MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        self._depth += 1
        try:
            if isinstance(value, list):
                return [self.decode(item) for item in value]
            kind = value[KIND]
            if kind not in self._kinds:
                raise ValueError(f"it contains a value of the unknown kind {kind!r}")
            return self._kinds[kind](value)
        finally:
            self._depth -= 1

    def _items(self, value: dict[str, Any]) -> list[Any]:
        return [self.decode(item) for item in value["items"]]

    def _dict(self, value: dict[str, Any]) -> dict[Any, Any]:
        keys = _checked_keys([self.decode(key) for key, _ in value["items"]])
        return {key: self.decode(item) for key, (_, item) in zip(keys, value["items"], strict=True)}

    def _array(self, value: dict[str, Any]) -> np.ndarray:
        pool, start, shape, order = value["pool"], value["start"], _shape(value["shape"]), value["order"]
        size = math.prod(shape)
        self._unused[pool] -= size
        flat = self.arrays[pool][start : start + size]
        if self._unused[pool] < 0 or start < 0 or len(flat) != size or order not in ("C", "F"):
            raise ValueError("an array is out of range, or overlaps with another")
        return np.array(flat.reshape(shape, order=order), order=order)

    def _names(self, value: dict[str, Any]) -> np.ndarray:
        text, ends = self._array(value["text"]), self._array(value["ends"])
        starts = np.concatenate([np.zeros(1, dtype=np.int64), ends])
        if text.dtype != np.uint8 or ends.dtype != np.int64 or (np.diff(starts) < 0).any() or starts[-1] != len(text):
            raise ValueError("the ends of its names do not match their text")
        letters, offsets = text.tobytes(), starts.tolist()
        names = np.empty(len(ends), dtype=object)
        names[:] = [letters[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(offsets)]
        return names

    def _objects(self, value: dict[str, Any]) -> np.ndarray:
        shape, items = _shape(value["shape"]), self._items(value)
        if math.prod(shape) != len(items):
            raise ValueError("the number of objects in an array does not match its shape")
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            array[i] = item
        return array.reshape(shape)

    def _groups(self, value: dict[str, Any]) -> Any:
        return named("FeatureGroups")(self._items(value))

    def _record(self, value: dict[str, Any]) -> Any:
        kind = _class_named(value["type"], lambda k: _is_coterie(k) and (dataclasses.is_dataclass(k) or hasattr(k, "_asdict")))
        return kind(**{name: self.decode(item) for name, item in value["fields"].items()})

    def _splitter(self, value: dict[str, Any]) -> Any:
        kind = _class_named(value["type"], lambda k: _is_sklearn(k) and issubclass(k, (BaseCrossValidator, BaseShuffleSplit)))
        return kind(**{name: self.decode(item) for name, item in value["fields"].items()})

    def _object(self, value: dict[str, Any]) -> Any:
        """Decode any other object of Coterie: set its attributes without calling its constructor."""
        kind = _class_named(value["type"], lambda k: _is_plain(k) and not issubclass(k, BaseEstimator))
        check_attribute_names(kind, value["fields"])
        result = object.__new__(kind)
        vars(result).update({name: self.decode(item) for name, item in value["fields"].items()})
        return result

    def _random_state(self, value: dict[str, Any]) -> np.random.RandomState:
        """Decode and check a state, because NumPy accepts any state and reads out of bounds for a wrong one."""
        name, words, place, has_gauss, gauss = self.decode(value["state"])
        kind, n_words = _TWISTER
        fits = isinstance(words, np.ndarray) and words.dtype == np.uint32 and words.shape == (n_words,)
        numbers = type(place) is int and 0 <= place <= n_words and has_gauss in (0, 1) and isinstance(gauss, float)
        if name != kind or not fits or not numbers:
            raise ValueError("it contains an invalid state of a random number generator")
        state = np.random.RandomState()
        state.set_state((name, words, place, int(has_gauss), gauss))
        return state

    def _function(self, value: dict[str, Any]) -> Any:
        function = named(value["type"])
        if not isinstance(function, types.FunctionType):
            raise ValueError(f"it names {value['type']!r}, which is not a public function of Coterie")
        if not self._in_parameters:
            raise ValueError("a fitted attribute is a function")
        return function

    def estimator(self, value: dict[str, Any]) -> Any:
        """Decode an estimator of Coterie, or an unfitted estimator of scikit-learn."""
        kind = _class_named(value["type"], lambda k: issubclass(k, BaseEstimator) and (_is_coterie(k) or _is_sklearn(k)))
        parameters = self._decode_all(value["parameters"], in_parameters=True)
        if value["attributes"] and not _is_coterie(kind):
            raise ValueError("it contains a fitted estimator of another package")
        attributes = self._decode_all(value["attributes"], in_parameters=False)
        unknown = sorted(set(parameters) - set(kind._get_param_names()))
        if unknown:
            raise ValueError(f"{kind.__name__} has no parameter {unknown[0]!r} in this version of Coterie")
        estimator = kind(**parameters)
        check_attribute_names(kind, attributes)
        fitted = {name: item for name, item in attributes.items() if is_fitted_name(name)}
        check_fitted(kind, fitted)
        check_size(fitted, sum(map(len, self.arrays.values())), self._max_features)
        vars(estimator).update(fitted)
        return estimator

    def _decode_all(self, values: dict[str, Any], *, in_parameters: bool) -> dict[str, Any]:
        outside, self._in_parameters = self._in_parameters, in_parameters
        try:
            return {name: self.decode(item) for name, item in values.items()}
        finally:
            self._in_parameters = outside


def unsafe_keys(keys: Collection[object]) -> str | None:
    """Describe keys whose hashes a file could make collide; None if there are none.

    Integers have the same hash if they differ by a multiple of 2**61 - 1. At most eight integers of 64 bits share a hash.
    """
    n_composite = 0
    for key in keys:
        if type(key) is int and not -(2**63) <= key < 2**64:
            return "an integer key of more than 64 bits"
        n_composite += not isinstance(key, _SIMPLE_KEYS)
    return None if n_composite <= _MAX_COMPOSITE_KEYS else f"more than {_MAX_COMPOSITE_KEYS} keys other than text and numbers"


def _checked_keys(keys: list[Any]) -> list[Any]:
    reason = unsafe_keys(keys)
    if reason is not None:
        raise ValueError(f"it contains a dictionary or set with {reason}")
    return keys


def _shape(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(n) is int and 0 <= n < 2**48 for n in value):
        raise ValueError(f"an array has the shape {value!r}"[:100])
    return tuple(value)


def _is_coterie(value: Any) -> bool:
    return str(value.__module__).split(".")[0] == "coterie"


def _is_plain(kind: type) -> bool:
    """Return True if a class is one of Coterie whose objects are defined by their attributes."""
    maker: Any = kind.__new__
    return _is_coterie(kind) and type(kind) is type and maker is object.__new__


def _is_sklearn(value: Any) -> bool:
    return str(value.__module__).split(".")[0] == "sklearn"


def _public_path(kind: type) -> str | None:
    """Return the shortest public import path of a class of scikit-learn; None if there is none."""
    parts = kind.__module__.split(".")
    modules = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
    return next((f"{module}.{kind.__name__}" for module in modules if _public_object(module, kind.__name__) is kind), None)


def _public_object(module: str, name: str) -> Any:
    """Return a public object of a public module of scikit-learn, or None. Nothing else is imported."""
    parts = [*module.split("."), name]
    if parts[0] != "sklearn" or any(p.startswith("_") or p in ("tests", "conftest", "externals") for p in parts):
        return None
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None


def _class_named(name: str, allowed: Callable[[type], bool]) -> Any:
    """Return a class of Coterie by its name in files, or a public class of scikit-learn by its import path."""
    module, _, last = name.rpartition(".")
    kind = _public_object(module, last) if module.split(".")[0] == "sklearn" else named(name)
    if not (inspect.isclass(kind) and allowed(kind)):
        raise ValueError(f"it names the type {name!r}, which this version of Coterie cannot create")
    return kind
