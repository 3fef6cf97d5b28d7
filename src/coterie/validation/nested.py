"""The held-out score of the whole procedure, choice of settings included: nested cross-validation with shared fits.

The outer fold k measures the settings that are chosen without its samples. For this choice every other fold j is held out in
turn, in a fit to the samples outside both. The fit without j and k serves twice: scored on j for the outer fold k, and scored
on k for the outer fold j. So five folds take ten inner fits per setting instead of twenty. The fits of the outer folds are
also those that determine the choice for all samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from coterie.inputs.offsets import by_output
from coterie.inputs.opening import Input
from coterie.search.search import SearchSettings, targets_of
from coterie.solver.loss import Loss
from coterie.validation.path_search import Fold
from coterie.validation.score_table import Candidate, ScoredPath, choose, score_table


def pairs_of(folds: Sequence[Fold]) -> list[Fold]:
    """Return one fold per pair of folds, fitted to the samples that neither holds out.

    Its two parts are the samples that only the first and only the second fold holds out.
    """
    result = []
    for a, b in combinations(folds, 2):
        first, second = a.parts[0], b.parts[0]
        weight = np.minimum(a.weight, b.weight)
        result.append(Fold(weight, (np.setdiff1d(first, second), np.setdiff1d(second, first))))
    return result


def nested_choices(
    pairs: Mapping[Candidate, Sequence[ScoredPath]],
    n_folds: int,
    *,
    rule: str,
    fewest: int,
    largest: int | None,
    deviances: Mapping[Candidate, Sequence[ScoredPath]] | None = None,
) -> list[tuple[Candidate, int]]:
    """Return the candidate and the number of features that are chosen without the samples of each fold.

    Parameters
    ----------
    pairs : mapping of Candidate to sequence of ScoredPath
        The paths of :func:`pairs_of` the folds, two per pair.
    n_folds : int
        Number of folds.
    rule, fewest, largest
        Parameters of the choice; see :func:`~coterie.validation.score_table.choose` and ``score_table``.
    deviances : mapping of Candidate to sequence of ScoredPath, optional
        Deviances of the models of ``pairs``.
    """
    # Positions in ``pairs`` of the scores that the choice of each outer fold may use.
    inner: list[list[int]] = [[] for _ in range(n_folds)]
    for number, (a, b) in enumerate(combinations(range(n_folds), 2)):
        inner[b].append(2 * number)  # scored on a
        inner[a].append(2 * number + 1)
    choices = []
    for positions in inner:
        results = score_table(_at(pairs, positions), largest, _at(deviances or {}, positions))
        row = choose(results, rule, fewest)
        chosen = Candidate(*(results[name][row].item() for name in Candidate._fields))
        choices.append((chosen, int(results["n_features"][row])))
    return choices


def _at(paths: Mapping[Candidate, Sequence[ScoredPath]], positions: Sequence[int]) -> dict[Candidate, list[ScoredPath]]:
    """Return the paths at some positions of each candidate."""
    return {candidate: [own[k] for k in positions] for candidate, own in paths.items()}


def baseline_outputs(data: Input, folds: Sequence[Fold], settings: SearchSettings) -> list[np.ndarray]:
    """Return the outputs of a prediction that does not use the features, for the held-out samples of each fold.

    It predicts the largest class, the mean or, for one class, that all samples are normal. With covariates or an offset it is
    the model on these alone.
    """
    found = []
    targets = targets_of(data)
    for fold in folds:
        held_out = fold.parts[0]
        if data.covariates is not None:
            loss = settings.loss_of(replace(data, weight=fold.weight))
            outputs = _by_covariates(loss, data.covariates[held_out])
        else:
            outputs = np.tile(settings.loss.constant_outputs(targets, fold.weight), (len(held_out), 1))
        found.append(outputs if data.offset is None else outputs + by_output(data.offset[held_out]))
    return found


def _by_covariates(loss: Loss, covariates: np.ndarray) -> np.ndarray:
    """Return the outputs of the model without features for samples with these covariates."""
    state = loss.evaluate(np.zeros((len(loss.strata), loss.n_outputs)))
    return np.asarray(covariates @ state.covariate_coef + state.intercept)
