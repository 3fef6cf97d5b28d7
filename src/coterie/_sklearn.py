"""All uses of scikit-learn's private helpers, and compatibility between its versions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _check_y as check_targets
from sklearn.utils.validation import validate_data

if TYPE_CHECKING:
    from sklearn.svm import LinearSVC

try:  # scikit-learn >= 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # Older versions have no callbacks.

    class CallbackSupportMixin:  # type: ignore[no-redef]  # one of the two is defined
        """Substitute for scikit-learn's mixin."""

    M = TypeVar("M", bound=Callable[..., Any])

    def with_callbacks(method: M) -> M:
        """Return the method unchanged."""
        return method


# Address of the documentation site, without a slash at the end. Empty: the site has no host yet, and estimators have no link.
DOCUMENTATION_URL = ""

__all__ = [
    "CallbackSupportMixin",
    "DocumentationLinkMixin",
    "RoundReport",
    "check_sample_weight",
    "check_targets",
    "fitted_svm",
    "safe_indexing",
    "sample_major",
    "stays_frame",
    "validate_data",
    "with_callbacks",
]


class DocumentationLinkMixin:
    """Link from the HTML representation of an estimator to its page on the documentation site.

    scikit-learn reads these attributes. Its defaults lead to its own site. The link is absent if there is no site, and for
    classes without a page: those that are not public, and subclasses in other packages.
    """

    _doc_link_module = "coterie"
    _doc_link_template = "{page}"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {"page": documentation_page(type(self))}


def documentation_page(kind: type) -> str:
    """Return the address of the page of a public class, or "" if there is none."""
    import coterie

    package = ".".join(kind.__module__.split(".")[:2])
    homes = ["coterie", *([package] if package.partition(".")[2] in coterie._MODULES else [])]
    home = next((name for name in homes if kind.__name__ in sys.modules[name].__all__), None)
    return f"{DOCUMENTATION_URL}/reference/generated/{home}.{kind.__name__}.html" if DOCUMENTATION_URL and home else ""


def stays_frame(estimator: BaseEstimator, X: Any) -> bool:
    """Return True if X is a data frame and ``set_output`` requests one."""
    is_frame = hasattr(X, "columns") and hasattr(X, "dtypes")
    return is_frame and _get_output_config("transform", estimator)["dense"] != "default"


def sample_major(columns: Any) -> Any:
    """Return columns in the format of scikit-learn's solvers: C order, or CSR with 32-bit indices if these suffice."""
    if isinstance(columns, np.ndarray):
        return np.ascontiguousarray(columns)
    rows = sparse.csr_array(columns)
    if max(*rows.shape, rows.nnz) <= np.iinfo(np.int32).max:
        rows.indices, rows.indptr = rows.indices.astype(np.int32, copy=False), rows.indptr.astype(np.int32, copy=False)
    return rows


def fitted_svm(X: Any, y: np.ndarray, **parameters: Any) -> LinearSVC:
    """Fit a linear SVM with liblinear. Raise a ValueError if the result is not finite.

    ``max_iter`` is limited, because liblinear's iteration counter has 32 bits.
    """
    from sklearn.svm import LinearSVC  # Imported here, because most uses of Coterie do not need it.

    parameters["max_iter"] = min(int(parameters["max_iter"]), np.iinfo(np.int32).max)
    model = LinearSVC(**parameters).fit(X, y)
    if not (np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()):
        raise ValueError(
            "The linear SVM cannot be computed: the scales of the features are too far apart for floating point. "
            "Standardise the features, for example with scikit-learn's StandardScaler."
        )
    return model


class RoundReport:
    """Reports each round of a fit to scikit-learn's callbacks (version 1.9 and later).

    Parameters
    ----------
    estimator : estimator
        The estimator that is fitted.
    max_rounds : int or None
        Maximum number of rounds, if it is known.
    y : ndarray
        The targets.
    """

    def __init__(self, estimator: Any, max_rounds: int | None, y: Any) -> None:
        self.estimator = estimator
        self.y = y
        self.context = None
        if getattr(estimator, "_skl_callbacks", None) or hasattr(estimator, "_parent_callback_ctx"):
            self.context = estimator._init_callback_context(max_subtasks=max_rounds)
            self.context.call_on_fit_task_begin(estimator=estimator, y=y)

    def round_done(self, state: Callable[[], dict[str, Any]]) -> bool:
        """Report a round, with a function that returns the current attributes. Return True if a callback requests a stop."""
        if self.context is None:
            return False
        task = self.context.subcontext(task_name="round")
        task.call_on_fit_task_begin(estimator=self.estimator, y=self.y)
        return bool(task.call_on_fit_task_end(estimator=self.estimator, y=self.y, reconstruction_attributes=state))

    def done(self, state: dict[str, Any]) -> None:
        """Report the end of the fit, with its attributes."""
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator, y=self.y, reconstruction_attributes=lambda: state)
