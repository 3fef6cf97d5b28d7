r"""Replication of a discovery in a second cohort: tests of its groups, their correlations, and the score of its model.

The representative of each group is its support feature or, if this is absent or constant, the usable member that is most
correlated with it in the first cohort. A regression of the outcome on all representatives (and the covariates) tests each of
them in the direction of the first cohort. This is the sign of the effect of the group, times that of the correlation of the
representative with the support feature. The regressions are those of :mod:`coterie.confidence.splits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie._numba import one_blas_thread
from coterie._parameters import Boolean, Fraction, OneOf, ParameterError, check
from coterie._warnings import ignored
from coterie.data.memory import as_source
from coterie.estimators.base import GroupDiscovery, input_of, is_model_of_counts, settings_of, task_of
from coterie.inputs.offsets import check_offset, log_exposure
from coterie.inputs.opening import Input, unwrap, unwrap_new
from coterie.inputs.substitution import NewData, members_read, substituted
from coterie.inputs.types import CovariatesLike, FeaturesLike, SampleGroupsLike, SamplesLike, TargetsLike
from coterie.replication.cohort import Cohort, Question
from coterie.replication.result import Replication
from coterie.replication.scores import score_replication
from coterie.replication.testing import Procedure, tested_groups
from coterie.replication.words import notes_about
from coterie.report.result import Discovery
from coterie.solver.losses import family_of

# Family-wise error rate if no rate is given.
_FWER = 0.05
# Number of features whose means and standard deviations are not all equal by chance, even if they have few distinct values.
_MANY, _FEW = 10, 10


def replicate(
    discovery: Discovery,
    X: FeaturesLike,
    y: TargetsLike = None,
    *,
    sample_weight: SamplesLike = None,
    covariates: CovariatesLike = None,
    offset: SamplesLike = None,
    exposure: SamplesLike = None,
    groups: SampleGroupsLike = None,
    which: str = "auto",
    joint: bool | str = "auto",
    fwer: float | None = None,
    fdr: float | None = None,
) -> Replication:
    """Test the groups of a discovery in a second cohort; see :meth:`coterie.Discovery.replicate`."""
    model = discovery.model
    check_options(which=which, joint=joint, fwer=fwer, fdr=fdr)
    if task_of(model) == "one-class":
        raise ValueError("A one-class model has no target, so its groups cannot be tested in a second cohort.")
    encoded = hasattr(model, "encoding_") and not isinstance(groups, str)
    found = unwrap_new(model, X, y, features=members_read(model)) if encoded else unwrap(X, y, groups=groups)
    if found.y is None:
        raise ValueError("Replication requires the labels of the second cohort. Pass y.")
    offset = _offset_of(model, offset, exposure)
    check_offset(model, offset)
    new = NewData(model, found.X)
    cohort = Cohort.of(model, new)
    _require_other_samples(discovery, cohort)
    covariates = found.covariates if covariates is None else covariates
    if hasattr(model, "covariate_names_") and covariates is None:
        names = ", ".join(model.covariate_names_)
        raise ValueError(f"The model was fitted with covariates ({names}). Pass those of the second cohort with covariates=.")
    sample_groups = found.sample_groups if groups is None or isinstance(groups, str) else groups
    with ignored(UserWarning):  # about properties that the first cohort had as well
        data = input_of(
            model,
            as_source(cohort.values),
            found.y,
            sample_weight,
            covariates=covariates,
            offset=offset,
            groups=sample_groups,
        )
    _check_targets(model, data)
    questions = [Question.of(group, data) for group in model.groups_]
    family = family_of(settings_of(model).loss, data.classes is not None)
    procedure = Procedure(which, joint, "fwer" if fdr is None else "fdr", fdr or fwer or _FWER, family)
    with one_blas_thread():
        entries, together = tested_groups(model, cohort, data, questions, procedure)
    substitute = substituted(model, found.X)
    given = {"covariates": covariates, "offset": offset}
    options = {name: value for name, value in given.items() if hasattr(model, _FITTED_WITH[name])}
    score = score_replication(model, substitute, data, discovery.held_out, options)
    weight = np.ones(data.n_samples) if data.weight is None else data.weight
    return Replication(
        entries,
        score,
        substitute.substitutes,
        n_samples=int(np.count_nonzero(weight)),
        error_rate=procedure.error_rate,
        level=float(procedure.level),
        joint=together,
        notes=notes_about(model, entries, data, procedure, together, score, substitute.substitutes),
    )


# Attributes of models that were fitted with covariates or an offset.
_FITTED_WITH = {"covariates": "covariate_names_", "offset": "offset_coef_"}


def check_options(
    *, which: str = "auto", joint: bool | str = "auto", fwer: float | None = None, fdr: float | None = None
) -> None:
    """Raise the errors of :func:`replicate` that do not depend on data."""
    check("which", which, OneOf("auto", "significant", "all"))
    check("joint", joint, Boolean() | OneOf("auto"))
    check("fwer", fwer, Fraction() | OneOf(None))
    check("fdr", fdr, Fraction() | OneOf(None))
    if fwer is not None and fdr is not None:
        raise ParameterError("fwer and fdr cannot be combined. Pass one of them.", "fwer", "fdr")


def _offset_of(model: GroupDiscovery, offset: SamplesLike, exposure: SamplesLike) -> SamplesLike:
    """Return the offset, which may be given as an exposure."""
    if exposure is None:
        return offset
    if not is_model_of_counts(model):
        raise ParameterError("exposure requires a model of counts. Omit it.", "exposure")
    if offset is not None:
        raise ParameterError(
            "exposure and offset cannot be combined. Add the logarithm of the exposure to the offset.", "exposure"
        )
    return log_exposure(exposure)


def _require_other_samples(discovery: Discovery, cohort: Cohort) -> None:
    """Raise a ``ValueError`` if the second cohort is the first one: all representatives have their moments of the fit.

    Moments of a few features with few values, such as genotypes, can be equal by chance.
    """
    values = cohort.values
    n_distinct = np.array([len(np.unique(column)) for column in values.T])
    if len(values) != discovery.data.get("samples") or (len(n_distinct) < _MANY and (n_distinct <= _FEW).all()):
        return
    mean, scale = np.transpose([known.moments for known in cohort.representatives if known is not None])
    same = np.abs(values.mean(axis=0) - mean) + np.abs(values.std(axis=0) - scale) <= 1e-9 * (np.abs(mean) + scale)
    if same.all():
        raise ValueError("The data are those of the first cohort, which cannot replicate itself. Pass other samples.")


def _check_targets(model: Any, data: Input) -> None:
    """Raise a ``ValueError`` if the outcome is not that of the first cohort."""
    if data.classes is not None:
        unknown = np.setdiff1d(data.classes, model.classes_)
        if len(unknown):
            raise ValueError(
                f"y has the label {unknown.tolist()[0]!r}, but the classes of the first cohort are "
                f"{_listed(model.classes_.tolist())}. Recode the labels of the second cohort."
            )
    first, second = getattr(model, "target_names_", None), data.target_names
    if (first is None) != (second is None) or (first is not None and second is not None and len(first) != len(second)):
        n_first, n_second = (1 if names is None else len(names) for names in (first, second))
        raise ValueError(
            f"The first cohort has {n_first} target(s), but the second one has {n_second}. Pass the same targets in the same "
            "order."
        )
    if first is not None and second is not None and tuple(first) != second:
        unnamed = tuple(f"target_{k}" for k in range(len(second)))
        if second != unnamed:
            raise ValueError(
                f"The targets are {_listed(list(second))}, but those of the first cohort are {_listed(first.tolist())}. Pass "
                "the same targets in the same order."
            )


def _listed(values: Sequence[Any], most: int = 6) -> str:
    more = f" and {len(values) - most} more" if len(values) > most else ""
    return ", ".join(repr(value) for value in values[:most]) + more
