"""What tests with known informative features reach in Stabl's protocol: bounds for selectors that state an error rate.

Two selections by the rule of Benjamini and Hochberg at 0.1, from the score tests that Coterie uses (least squares for
numbers, logistic regression for classes):

- "given the truth": each feature given all (other) informative features, which no method knows. A feature that only represents
  others has a uniform p-value.
- "alone": each feature without any other. Features that represent an informative one count as associated.

Seeds are those of error_control.py --seeds report. Writes a table of docs/evidence/error-control.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from _error_designs import DESIGNS, Design
from _record import caption, read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section

from coterie.confidence.association import tail
from coterie.solver.regression import logistic_effects

FDR, FIRST_SEED = 0.1, 1000


def p_values(X: np.ndarray, y: np.ndarray, given: np.ndarray, task: str) -> np.ndarray:
    """Return the p-values of the score tests of all features, given some columns."""
    design = np.column_stack([np.ones(len(y)), given])
    if task == "regression":
        root, freedom = np.ones(len(y)), float(len(y) - design.shape[1])
        basis = np.linalg.qr(design)[0]
        residual = y - basis @ (basis.T @ y)
        residual /= np.sqrt(residual @ residual / freedom)
    else:
        effect = logistic_effects(design, y.astype(np.float64), np.ones(len(y))).effect
        share = 1.0 / (1.0 + np.exp(-design @ effect))
        root, freedom = np.sqrt(np.maximum(share * (1.0 - share), 1e-9)), np.inf
        basis, residual = np.linalg.qr(design * root[:, None])[0], (y - share) / root
    left = X * root[:, None]
    left -= basis @ (basis.T @ left)
    norm = np.sqrt((left**2).sum(axis=0))
    return tail(left.T @ residual / np.where(norm > 1e-8, norm, np.inf), freedom)


def given_the_truth(design: Design, X: np.ndarray) -> np.ndarray:
    """Return the p-value of each feature given all other informative features."""
    causal = design.informative
    found = p_values(X, design.y, X[:, causal], design.task)
    for feature in causal:
        others = X[:, causal[causal != feature]]
        found[feature] = p_values(X[:, [feature]], design.y, others, design.task)[0]
    return found


def alone(design: Design, X: np.ndarray) -> np.ndarray:
    """Return the p-value of each feature without any other."""
    return p_values(X, design.y, X[:, :0], design.task)


METHODS: dict[str, Callable[[Design, np.ndarray], np.ndarray]] = {"given the truth": given_the_truth, "alone": alone}


def selected(p_value: np.ndarray) -> np.ndarray:
    """Return the features that the rule of Benjamini and Hochberg selects."""
    order = np.argsort(p_value, kind="stable")
    good = np.flatnonzero(p_value[order] <= FDR * np.arange(1, len(order) + 1) / len(order))
    return order[: good[-1] + 1] if len(good) else order[:0]


def measure(name: str, n_draws: int) -> list[dict[str, object]]:
    """Return one row per method: means over the draws of a cell."""
    lines: dict[str, list[tuple[float, float]]] = {method: [] for method in METHODS}
    for seed in range(FIRST_SEED, FIRST_SEED + n_draws):
        design = DESIGNS[name].make(seed)
        X = (design.X - design.X.mean(axis=0)) / design.X.std(axis=0)
        for method, test in METHODS.items():
            found = selected(test(design, X))
            hits = int(np.isin(found, design.informative).sum())
            index = hits / (len(design.informative) + len(found) - hits)
            lines[method].append((index, 1.0 - hits / len(found) if len(found) else 0.0))
    return [
        {
            "design": name,
            "method": method,
            "Jaccard": np.mean([x[0] for x in own]),
            "false share": np.mean([x[1] for x in own]),
        }
        for method, own in lines.items()
    ]


def table(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return one row per cell, and the means over all cells."""
    methods = list(METHODS)
    by = {(row["design"], row["method"]): row for row in rows}
    names = list(dict.fromkeys(row["design"] for row in rows))
    shown = [
        {"design": name}
        | {f"{method}: {key}": f"{by[name, method][key]:.2f}" for method in methods for key in ("Jaccard", "false share")}
        for name in names
    ]
    mean = {
        f"{method}: {key}": f"{np.mean([by[name, method][key] for name in names]):.3f}"
        for method in methods
        for key in ("Jaccard", "false share")
    }
    return [*shown, {"design": "mean", **mean}]


def main() -> None:
    options = read_arguments(__doc__, repeats=20)
    names = [name for name, entry in DESIGNS.items() if entry.part == "stabl"][: 2 if options.quick else None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [row for name in names for row in measure(name, options.repeats)]
    print_table("Selections at 0.1 with known informative features", table(rows))
    write_results("error_bounds", options, rows=rows)
    if not options.quick:
        replace_section(DOCS / "error-control.md", "bounds", f"{caption()}\n\n{markdown_table(table(rows))}")


if __name__ == "__main__":
    main()
