"""Wide dense data: 2,000 x 10,000, 1,000 blocks of 10 features (r about 0.9); the class depends on 20 of the blocks.

The goal is that Coterie finds all 20 blocks completely, and faster than other methods find 20 features. L1 models are tuned
to 20 features, SLOPE to the 200 features of the 20 blocks, because it is designed to select correlated features together.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from _fresh_process import ChildRun, run_in_child
from _models import fit_slope, tune
from _record import read_arguments, write_results
from _side_by_side import (
    Contender,
    Outcome,
    fit_in_turn,
    held_out_accuracy,
    judged_rows,
    slow_row,
    usual_contenders,
    work_facts,
)
from _tables import print_facts, print_table, verdict
from _timing import measure_bare_pass

BLOCK_SIZE = 10


class Blocks(NamedTuple):
    """Feature-major data of equally correlated blocks; the class depends on the blocks ``signal``."""

    X: np.ndarray
    y: np.ndarray
    signal: np.ndarray

    def members(self, block: int) -> set[int]:
        return set(range(block * BLOCK_SIZE, (block + 1) * BLOCK_SIZE))


def make_blocks(n_samples: int, n_blocks: int, n_signal: int, r: float, noise: float, seed: int) -> Blocks:
    """Return blocks of features: each is ``sqrt(r)`` times its block's factor plus noise.

    The class is the sign of a sum of factors with weights of +-1.
    """
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n_blocks, n_samples))
    rows = rng.standard_normal((n_blocks, BLOCK_SIZE, n_samples))
    rows *= np.sqrt(1.0 - r)
    rows += np.sqrt(r) * factors[:, None, :]
    signal = rng.choice(n_blocks, size=n_signal, replace=False)
    total = rng.choice([-1.0, 1.0], size=n_signal) @ factors[signal] + noise * rng.standard_normal(n_samples)
    return Blocks(rows.reshape(n_blocks * BLOCK_SIZE, n_samples).T, np.where(total > 0, 1, -1), signal)


def split(data: Blocks, n_train: int) -> tuple[Blocks, Blocks]:
    """Return the first samples for training and the rest as held-out samples."""
    parts = (slice(None, n_train), slice(n_train, None))
    train, test = (Blocks(np.asfortranarray(data.X[part]), data.y[part], data.signal) for part in parts)
    return train, test


def found_blocks(data: Blocks, found: list[set[int]]) -> dict[str, int]:
    """Count signal blocks equal to a found group, signal blocks with any found feature, and features outside of them."""
    whole = sum(data.members(block) in found for block in data.signal)
    features = set().union(*found)
    hit = sum(bool(data.members(block) & features) for block in data.signal)
    right = set().union(*(data.members(block) for block in data.signal))
    return {"blocks whole": whole, "blocks hit": hit, "other features": len(features - right)}


def found_by(outcome: Outcome, data: Blocks) -> dict[str, int]:
    """Compare the groups with the blocks; for a model without groups, a block is whole if all members were selected."""
    if hasattr(outcome.model, "groups_"):
        return found_blocks(data, [{int(j) for j in group.members} for group in outcome.model.groups_])
    return found_by_features(outcome.features, data)


def found_by_features(features: np.ndarray, data: Blocks) -> dict[str, int]:
    """Compare the selected features, grouped by block, with the blocks."""
    kept: dict[int, set[int]] = {}
    for feature in features.tolist():
        kept.setdefault(feature // BLOCK_SIZE, set()).add(feature)
    return found_blocks(data, list(kept.values()))


def fit_smart_correlated(X: np.ndarray, y: np.ndarray) -> Any:
    """Fit feature-engine's correlated groups at the same threshold, represented by the feature of largest variance."""
    import pandas as pd
    from feature_engine.selection import SmartCorrelatedSelection

    return SmartCorrelatedSelection(threshold=0.7, selection_method="variance").fit(_frame(pd, X), y)


def fit_mrmr(X: np.ndarray, y: np.ndarray) -> Any:
    """Fit feature-engine's mRMR (F statistic over correlation), 100 features."""
    import pandas as pd
    from feature_engine.selection import MRMR

    return MRMR(method="FCQ", max_features=100).fit(_frame(pd, X), pd.Series((y > 0).astype(int)))


def fit_rfe(X: np.ndarray, y: np.ndarray, n_features: int) -> Any:
    """Fit scikit-learn's recursive elimination with a linear SVM, a tenth of the features per step."""
    from sklearn.feature_selection import RFE
    from sklearn.svm import LinearSVC

    return RFE(LinearSVC(), n_features_to_select=n_features, step=0.1).fit(X, y)


def _frame(pandas: Any, X: np.ndarray) -> Any:
    return pandas.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])


def contenders(data: Blocks, n_features: int, threads: int) -> list[Contender]:
    """Return the usual contenders, Coterie on the other layout, and SLOPE."""
    by_sample = np.ascontiguousarray(data.X)
    usual = usual_contenders(data.X, by_sample, data.y, n_features, threads)
    result = [*usual[:2], Contender(f"{usual[0].name}, C order", usual[0].fit, by_sample), *usual[2:]]
    if find_spec("sortedl1") is None:
        print("SLOPE is skipped. Install it with: pip install sortedl1")
        return result
    slope = tune(fit_slope, data.X, data.y, BLOCK_SIZE * len(data.signal), 1.0, max_fits=12)
    return [*result, Contender("SLOPE", partial(fit_slope, C=slope.C), data.X)]


def slow_contenders(n_features: int) -> dict[str, Any]:
    """Return the methods that take minutes."""
    fits: dict[str, Any] = {"RFE, step 0.1": partial(fit_rfe, n_features=n_features)}
    if find_spec("feature_engine") is None:
        print("SmartCorrelatedSelection and mRMR are skipped. Install them with: pip install feature-engine")
        return fits
    return fits | {"mRMR, 100 features": fit_mrmr, "SmartCorrelatedSelection": fit_smart_correlated}


def main() -> None:
    options = read_arguments(__doc__, slow="also run SmartCorrelatedSelection, mRMR and RFE (minutes)")
    n_train, n_blocks, n_signal = (600, 100, 10) if options.quick else (2000, 1000, 20)
    train, test = split(make_blocks(n_train + 1000, n_blocks, n_signal, 0.9, 1.0, options.seed), n_train)
    outcomes = fit_in_turn(contenders(train, n_signal, options.threads), train.y, options.repeats)
    ours = outcomes[0]
    judge = partial(held_out_accuracy, train.X, train.y, test.X, test.y)
    rows = judged_rows(outcomes, partial(found_by, data=train), judge)
    if options.slow:
        for name, fit in slow_contenders(n_signal).items():
            run: ChildRun = run_in_child(fit, train.X, train.y, options.limit)
            row = slow_row(name, run, ours)
            if run.features is not None:
                row |= found_by_features(run.features, train)
                row["accuracy"] = judge(run.features)
            rows.append(row)
    facts = work_facts(ours.model, ours, measure_bare_pass(train.X, options.threads, options.repeats), train.X)
    facts["all blocks whole"] = f"{rows[0]['blocks whole']} of {n_signal}: {verdict(rows[0]['blocks whole'] == n_signal)}"
    size = f"{n_train:,} x {train.X.shape[1]:,}"
    print_table(f"wide-dense: {size}, {n_signal} of {n_blocks:,} blocks with signal (* not converged)", rows)
    print_facts(f"Work of {ours.name}", facts)
    write_results("wide_dense", options, rows=rows, work=facts)


if __name__ == "__main__":
    main()
