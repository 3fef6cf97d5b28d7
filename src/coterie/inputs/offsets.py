"""Offsets: one number per sample, such as the prediction of another model, that a model takes into account.

Losses of numbers add the offset to their outputs with the fixed weight 1. So the features explain y minus the offset, or, for
counts, the rate per exposure if the offset is the logarithm of the exposure. The hinge loss has a free margin, so its outputs
have no scale. For classes, the offset is therefore a covariate whose weight is fitted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.data.source import LARGEST_NORM


def read_offset(offset: Any, n_samples: int, name: str = "offset", n_targets: int | None = None) -> np.ndarray:
    """Check an offset (``name`` in messages) and return it as float64 array of shape (n_samples,).

    For several targets, it has the shape (n_samples, n_targets). A one-dimensional offset is then that of every target.

    Examples
    --------
    >>> from coterie.inputs.offsets import read_offset
    >>> read_offset([1, 2], 2)
    array([1., 2.])
    >>> read_offset([1, 2], 2, n_targets=3)
    array([[1., 1., 1.],
           [2., 2., 2.]])
    """
    values = np.asarray(offset)
    if n_targets is not None and values.ndim == 2:
        if values.shape[1] != n_targets:
            raise ValueError(f"{name} has {values.shape[1]} columns, but there are {n_targets} targets. Pass one column each.")
        return np.column_stack([read_offset(values[:, c], n_samples, name) for c in range(n_targets)])
    if n_targets is not None:
        return np.tile(read_offset(values, n_samples, name)[:, None], n_targets)
    if values.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional, one number per sample, but has {values.ndim} dimensions. Of offsets by "
            "chromosome, pass the column of the chromosome whose features are searched."
        )
    if len(values) != n_samples:
        raise ValueError(f"{name} has {len(values)} entries, but X has {n_samples} samples.")
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not numeric ({values.dtype}). Pass one number per sample.") from error
    missing = ~np.isfinite(numbers)
    if missing.any():
        raise ValueError(
            f"{name} is missing or infinite for {int(missing.sum())} sample(s). The first is sample "
            f"{int(np.argmax(missing))}. Drop these samples or complete them."
        )
    if np.abs(numbers).max(initial=0.0) > LARGEST_NORM:
        raise ValueError(f"Values of {name} exceed {LARGEST_NORM:.0e}. Rescale it.")
    return numbers


def log_exposure(exposure: Any) -> np.ndarray:
    """Return the offset for counts that were observed with some exposures: their logarithm.

    Examples
    --------
    >>> from coterie.inputs.offsets import log_exposure
    >>> log_exposure([1.0, 2.0]).round(3)
    array([0.   , 0.693])
    """
    values = np.asarray(exposure)
    numbers = read_offset(values, values.shape[0] if values.ndim else 0, "exposure")
    wrong = np.flatnonzero(numbers <= 0.0)
    if len(wrong):
        raise ValueError(
            f"exposure must be positive, but is {numbers[wrong[0]]:g} for sample {wrong[0]} ({len(wrong)} such sample(s)). "
            "Drop samples without exposure."
        )
    return np.log(numbers)


def match_offset(estimator: Any, offset: Any, n_samples: int) -> np.ndarray | None:
    """Return the offset of new samples, which is given if and only if the model was fitted with one.

    Its shape is (n_samples, 1), or (n_samples, n_targets) for several targets.
    """
    check_offset(estimator, offset)
    if offset is None:
        return None
    return by_output(read_offset(offset, n_samples, n_targets=n_several(estimator)))


def n_several(estimator: Any) -> int | None:
    """Return the number of targets of a fitted model if there are several, else None."""
    names = getattr(estimator, "target_names_", None)
    return None if names is None else len(names)


def by_output(offset: np.ndarray) -> np.ndarray:
    """Return an offset with one column per output."""
    return offset[:, None] if offset.ndim == 1 else offset


def check_offset(estimator: Any, offset: Any) -> None:
    """Raise a ``ValueError`` unless an offset is given if and only if the model was fitted with one."""
    fitted = hasattr(estimator, "offset_coef_")
    if offset is None and fitted:
        raise ValueError("The model was fitted with an offset. Pass that of these samples as offset=.")
    if offset is not None and not fitted:
        raise ValueError("The model was fitted without an offset. Omit offset=.")


def explains_numbers(offset: np.ndarray, targets: np.ndarray) -> bool:
    """Return True if the targets are the offset plus a constant, up to rounding; if there are several, any of them."""
    if targets.ndim == 2:
        return any(explains_numbers(*columns) for columns in zip(offset.T, targets.T, strict=True))
    rest, centred = targets - offset, targets - targets.mean()
    return float(((rest - rest.mean()) ** 2).sum()) <= 1e-20 * float((centred**2).sum())
