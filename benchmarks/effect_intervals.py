"""How many intervals of the effects of selected groups miss their effect?

Data have 0 to 20 features with an effect, among neighbours that are correlated by 0.5. A plain estimator selects groups, whose
effects ``group_effects`` estimates: without evidence (all groups in one regression), and with the q-values of
``group_confidence`` (significant groups together, the others beside them). The effect that an interval should contain is that
of the same regression on 20,000 fresh samples. "95 %, one regression" are intervals without any adjustment, as Coterie had
until 2026-11-19.

Seeds from 1000 on; the rule was decided with the seeds 0 to 19 of the numeric designs. Writes a table of
docs/evidence/error-control.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from _record import caption, read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from scipy import stats

import coterie

FIRST_SEED, N_FRESH, CORRELATION = 1000, 20_000, 0.5


@dataclass(frozen=True)
class Situation:
    """Sizes of the data, and of the model."""

    task: str
    n_samples: int
    n_features: int
    n_effects: int
    n_selected: int

    @property
    def name(self) -> str:
        """Name of the row."""
        size = f"{self.n_samples:,} × {self.n_features:,}"
        return f"{self.task}, {size}, {self.n_effects} effects, {self.n_selected} groups"


SITUATIONS = (
    Situation("numbers", 250, 600, 0, 20),
    Situation("numbers", 250, 600, 5, 20),
    Situation("numbers", 100, 2000, 5, 20),
    Situation("numbers", 500, 20, 5, 20),
    Situation("numbers", 1000, 2000, 20, 40),
    Situation("classes", 250, 600, 0, 20),
    Situation("classes", 250, 600, 5, 20),
    Situation("classes", 1000, 2000, 20, 40),
    Situation("counts", 250, 600, 5, 20),
)


def draw(case: Situation, seed: int, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features and outcome; the effects depend on the seed, and the samples on their number as well."""
    effects = np.random.default_rng(seed)
    weights = np.zeros(case.n_features)
    weights[effects.choice(case.n_features, case.n_effects, replace=False)] = effects.choice([-1.0, 1.0], case.n_effects)
    rng = np.random.default_rng([seed, n_samples])
    X = rng.standard_normal((n_samples, case.n_features))
    for j in range(1, case.n_features):
        X[:, j] = CORRELATION * X[:, j - 1] + np.sqrt(1 - CORRELATION**2) * X[:, j]
    signal = X @ weights / max(1.0, np.sqrt(case.n_effects))
    if case.task == "numbers":
        return X, signal + rng.standard_normal(n_samples)
    if case.task == "classes":
        return X, (rng.random(n_samples) < 1.0 / (1.0 + np.exp(-2.0 * signal))).astype(int)
    return X, rng.poisson(np.exp(0.5 * signal + 0.5)).astype(np.float64)


def shares(case: Situation, seed: int) -> dict[str, list[float]]:
    """Return for each rule whether each interval misses its effect, and whether the group is significant."""
    X, y = draw(case, seed, case.n_samples)
    fresh = draw(case, seed, N_FRESH)
    loss = {"loss": "poisson"} if case.task == "counts" else {}
    kind = coterie.GroupDiscoveryClassifier if case.task == "classes" else coterie.GroupDiscoveryRegressor
    model = kind(case.n_selected, **loss).fit(X, y)
    unknown = model.groups_
    known = coterie.group_confidence(model, X, y, random_state=0).attach(unknown)
    found = {}
    for rule, groups in (("without evidence", unknown), ("with q-values", known)):
        model.groups_ = groups
        estimate, truth = coterie.group_effects(model, X, y), coterie.group_effects(model, *fresh)
        # The effects refer to standard deviations of the samples of each estimate.
        scale = X[:, groups.support].std(axis=0) / fresh[0][:, groups.support].std(axis=0)
        target = truth.effects[:, 0] * scale
        found[rule] = ((estimate.low[:, 0] > target) | (estimate.high[:, 0] < target)).tolist()
        if rule == "without evidence":
            width = (estimate.high - estimate.effects)[:, 0] * quantile_ratio(estimate.level, case, len(groups))
            found["95 %, one regression"] = (np.abs(estimate.effects[:, 0] - target) > width).tolist()
    found["significant"] = [bool(group.q_value <= 0.1) for group in known]
    return found


def quantile_ratio(level: float, case: Situation, n_groups: int) -> float:
    """Return the ratio of the quantiles of 95 % intervals and of those of a level."""
    freedom = np.inf if case.task == "classes" else case.n_samples - n_groups - 1
    return float(stats.t.ppf(0.975, freedom) / stats.t.ppf(0.5 + level / 2, freedom))


def mean_and_error(values: list[float]) -> str:
    """Return the mean over the draws with its standard error."""
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.3f}"


def main() -> None:
    """Run all situations and write the table."""
    options = read_arguments(__doc__, repeats=40)
    rows = []
    for case in SITUATIONS:
        draws = [shares(case, FIRST_SEED + k) for k in range(options.repeats)]
        row = {"situation": case.name}
        for rule in ("95 %, one regression", "without evidence", "with q-values"):
            row[rule] = mean_and_error([float(np.mean(one[rule])) for one in draws])
        pairs = [np.array([one["significant"], one["with q-values"]]) for one in draws]
        significant = [float(both[1][both[0] > 0].mean()) if both[0].any() else 0.0 for both in pairs]
        row["with q-values, significant groups"] = mean_and_error(significant)
        row["significant groups"] = f"{np.mean([both[0].sum() for both in pairs]):.1f}"
        rows.append(row)
        print_table("Share of intervals that miss their effect", rows)
    write_results("effect_intervals", options, rows=rows)
    if not options.quick:
        replace_section(DOCS / "error-control.md", "effect intervals", f"{caption()}\n\n{markdown_table(rows)}")


if __name__ == "__main__":
    main()
