"""The score of the whole procedure, the choice of its settings included: nested cross-validation without nested work.

The outer fold k measures what is chosen without its samples. For that every other fold j is held out in turn, in fits to
what is left without both. The fit without j and k serves twice: the outer fold k, scored on j, and the outer fold j, scored on
k. So five folds take ten fits per setting instead of twenty, and the fits of the outer folds are those that the choice for all
samples rests on anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from coterie.inputs.opening import Input
from coterie.search.search import SearchSettings
from coterie.solver.loss import Loss, Targets
from coterie.validation.held_out import HeldOutScores
from coterie.validation.path_search import Fold
from coterie.validation.score_table import Candidate, ScoredPath, choose, merge_paths, score_table


def pairs_of(folds: Sequence[Fold]) -> list[Fold]:
    """For every two folds the samples that neither holds out, and what each holds out and the other does not."""
    result = []
    for a, b in combinations(folds, 2):
        first, second = a.parts[0], b.parts[0]
        weight = np.minimum(a.weight, b.weight)
        result.append(Fold(weight, (np.setdiff1d(first, second), np.setdiff1d(second, first))))
    return result


def nested_scores(
    outer: Mapping[Candidate, Sequence[ScoredPath]],
    pairs: Mapping[Candidate, Sequence[ScoredPath]],
    n_folds: int,
    *,
    rule: str,
    fewest: int,
    largest: int | None,
) -> np.ndarray:
    """The score of each fold for what is chosen without its samples.

    Parameters
    ----------
    outer : mapping of Candidate to sequence of ScoredPath
        The paths of the folds.
    pairs : mapping of Candidate to sequence of ScoredPath
        Those of :func:`pairs_of` the folds, two for each pair.
    n_folds : int
        Number of folds.
    rule, fewest, largest
        How a candidate is chosen; see :func:`~coterie.validation.score_table.choose` and ``score_table``.
    """
    inner: list[list[int]] = [[] for _ in range(n_folds)]  # the places, in pairs, of the scores that each outer fold may see
    for number, (a, b) in enumerate(combinations(range(n_folds), 2)):
        inner[b].append(2 * number)  # scored on a
        inner[a].append(2 * number + 1)
    scores = np.empty(n_folds)
    for fold, places in enumerate(inner):
        results = score_table({candidate: [paths[k] for k in places] for candidate, paths in pairs.items()}, largest)
        row = choose(results, rule, fewest)
        chosen = Candidate(*(results[name][row].item() for name in Candidate._fields))
        sizes, table = merge_paths([outer[chosen][fold]])
        place = np.searchsorted(sizes, results["n_features"][row], side="right") - 1
        scores[fold] = table[0, max(place, 0)]
    return scores


def constant_scores(score: HeldOutScores, data: Input, folds: Sequence[Fold], settings: SearchSettings) -> np.ndarray:
    """The score of each fold for a prediction that does not look at the features.

    That is the largest class, the mean, or of one class that all samples are normal; with covariates, what the loss of the
    fold's samples makes of these alone.
    """
    scores = np.empty(len(folds))
    targets = Targets(data.targets, 0 if data.classes is None else len(data.classes))
    for number, fold in enumerate(folds):
        held_out = fold.parts[0]
        if data.covariates is not None:
            loss = settings.loss_of(replace(data, weight=fold.weight))
            outputs = _by_covariates(loss, data.covariates[held_out])
        else:
            outputs = np.tile(settings.loss.constant_outputs(targets, fold.weight), (len(held_out), 1))
        scores[number] = score(outputs, held_out)
    return scores


def _by_covariates(loss: Loss, covariates: np.ndarray) -> np.ndarray:
    """Outputs of the model without features for samples with these covariates."""
    state = loss.evaluate(np.zeros((len(loss.strata), loss.n_outputs)))
    return np.asarray(covariates @ state.covariate_coef + state.intercept)
