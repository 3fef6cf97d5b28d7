"""Separation of true and false groups by their confidence, on data with known groups.

The TPAMI data (twenty seeds that were not used for any choice), the ICML data with many weak groups, and SNPs with linkage. A
found group is true if it shares a member with a planted one. Half-samples only; confidence_calibration.py has permuted labels.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from _models import warnings_counted
from _record import read_arguments, write_results
from _tables import DOCS, columns, markdown_table, print_table, replace_section
from _truth import is_found, is_true, linked, members_of

from coterie import GroupDiscoveryClassifier, group_confidence
from coterie.datasets import make_big_dimensional, make_feature_groups, make_support_affiliated

CUT = 0.9
CUTS = (0.3, 0.4, 0.5, 0.7, 0.9)
N_PAIRS = 25


class Kind(NamedTuple):
    """A kind of data: generator, number of support features to select, and limits of the classes of |weight|."""

    name: str
    make: Callable[[int], Any]
    n_features: int
    n_seeds: int
    weights: tuple[float, ...]


def kinds(quick: bool) -> list[Kind]:
    """Return the kinds of data.

    TPAMI: 12 groups with weights from N(0, 1). ICML: 200 groups, 170 of them single features. SNPs: weights 1 to 2.
    """
    if quick:
        return [
            Kind("TPAMI", lambda seed: make_support_affiliated(512, 1000, random_state=seed), 20, 2, (0.15, 0.5)),
            Kind("ICML", lambda seed: make_feature_groups(512, 1000, random_state=seed), 20, 1, (0.5, 1.0, 1.5)),
            Kind("SNPs", lambda seed: snps(300, 1000, seed), 20, 1, (1.25, 1.5, 1.75)),
        ]
    return [
        Kind(
            "TPAMI",
            lambda seed: make_support_affiliated(2048, 10_000, n_support=12, n_true=38, random_state=seed),
            20,
            20,
            (0.05, 0.15, 0.5),
        ),
        Kind("ICML", lambda seed: make_feature_groups(random_state=seed), 100, 3, (0.5, 1.0, 1.5, 2.0)),
        Kind("SNPs, 1,000 x 10,000", lambda seed: snps(1000, 10_000, seed), 30, 5, (1.25, 1.5, 1.75)),
        Kind("SNPs, 500 x 5,000", lambda seed: snps(500, 5000, seed), 30, 5, (1.25, 1.5, 1.75)),
    ]


def snps(n_samples: int, n_features: int, seed: int) -> Any:
    """Return genotypes in linkage blocks with 20 causal SNPs."""
    return make_big_dimensional("psoriasis", n_samples=n_samples, n_features=n_features, random_state=seed)


@dataclass
class Found:
    """Result of one seed: confidence and truth of each found group, and whether each planted group was found."""

    confidence: np.ndarray
    true: np.ndarray
    linked: np.ndarray
    weights: np.ndarray
    found: np.ndarray
    published: np.ndarray
    seconds: float = field(default=0.0)

    @property
    def separated(self) -> bool:
        """Whether all true groups reach the cut and no false one does."""
        return bool(np.array_equal(self.confidence >= CUT, self.true))

    @property
    def some_cut(self) -> bool:
        """Whether any cut at all separates them."""
        return bool(self.confidence[self.true].min(initial=2.0) > self.confidence[~self.true].max(initial=-1.0))


def run(kind: Kind, seed: int, threads: int) -> Found:
    """Fit, estimate confidences, and compare the groups with the planted ones."""
    data = kind.make(seed)
    model = GroupDiscoveryClassifier(kind.n_features, C=1.0, standardize=True, n_jobs=threads)
    with warnings_counted():
        model.fit(data.X, data.y)
        began = time.perf_counter()
        result = group_confidence(model, data.X, data.y, n_pairs=N_PAIRS, n_permutations=0, random_state=seed, n_jobs=threads)
    found, planted = members_of(model.groups_), members_of(data.groups)
    supports = np.array([group.support for group in data.groups])
    sure = [members for members, value in zip(found, result.confidence, strict=True) if value >= CUT]
    return Found(
        confidence=result.confidence,
        true=is_true(found, planted),
        linked=linked(data.X, np.array([group.support for group in model.groups_]), supports),
        weights=np.abs(data.weights),
        found=is_found(planted, found),
        published=is_found(planted, sure),
        seconds=time.perf_counter() - began,
    )


def spread(values: np.ndarray) -> str:
    """Return minimum, quartiles and maximum."""
    return " / ".join(f"{value:.2f}" for value in np.quantile(values, [0, 0.25, 0.5, 0.75, 1])) if len(values) else "none"


def separation_row(kind: Kind, records: Sequence[Found]) -> dict[str, Any]:
    """Return the row on the separation of true and false groups."""
    confidence, true, near = (
        np.concatenate([getattr(record, name) for record in records]) for name in ("confidence", "true", "linked")
    )
    sure = confidence >= CUT
    return {
        "data": kind.name,
        "seeds": len(records),
        "requested": kind.n_features,
        "true groups": int(true.sum()),
        "confidence of true groups": spread(confidence[true]),
        "false groups": int((~true).sum()),
        "confidence of false groups": spread(confidence[~true]),
        f"true >= {CUT}": int((sure & true).sum()),
        f"false >= {CUT}": int((sure & ~true).sum()),
        "of these linked": int((sure & ~true & near).sum()),
        f"seeds separated at {CUT}": f"{sum(record.separated for record in records)}/{len(records)}",
        "separated at some cut": f"{sum(record.some_cut for record in records)}/{len(records)}",
        "median s": float(np.median([record.seconds for record in records])),
    }


def cut_row(kind: Kind, records: Sequence[Found]) -> dict[str, Any]:
    """Return the true and false groups that each cut of the confidence reports."""
    confidence, true = (np.concatenate([getattr(record, name) for record in records]) for name in ("confidence", "true"))
    row = {"data": kind.name, "all": f"{true.sum()} / {(~true).sum()}"}
    for cut in CUTS:
        reported = confidence >= cut - 1e-9
        row[f">= {cut}"] = f"{(true & reported).sum()} / {(~true & reported).sum()}"
    return row


def weight_rows(kind: Kind, records: Sequence[Found]) -> list[dict[str, Any]]:
    """Return the numbers of planted groups that were found, at all and with a high confidence, by absolute weight."""
    weights, found, published = (
        np.concatenate([getattr(record, name) for record in records]) for name in ("weights", "found", "published")
    )
    edges = [0.0, *kind.weights, np.inf]
    rows = []
    for low, high in pairwise(edges):
        here = (weights >= low) & (weights < high)
        if here.any():
            rows.append(
                {
                    "data": kind.name,
                    "absolute weight": f"{low:g} to {high:g}" if np.isfinite(high) else f"{low:g} or more",
                    "planted": int(here.sum()),
                    "found": int(found[here].sum()),
                    f"at {CUT} or more": int(published[here].sum()),
                }
            )
    return rows


def main() -> None:
    options = read_arguments(__doc__)
    first = options.seed or 1000  # seeds not used to choose any default
    everything = {}
    for kind in kinds(options.quick):
        everything[kind] = []
        for seed in range(first, first + kind.n_seeds):
            everything[kind].append(run(kind, seed, options.threads))
            print(f"{kind.name}, seed {seed}: {everything[kind][-1].seconds:.1f} s", flush=True)
    rows = [separation_row(kind, records) for kind, records in everything.items()]
    print_table(f"Confidence of true and false groups, {N_PAIRS} half-sample pairs", rows)
    by_weight = [row for kind, records in everything.items() for row in weight_rows(kind, records)]
    print_table("Planted groups that were found", by_weight)
    by_cut = [cut_row(kind, records) for kind, records in everything.items()]
    print_table("True / false groups by confidence", by_cut)
    details = {kind.name: [vars(record) for record in records] for kind, records in everything.items()}
    write_results("confidence_truth", options, rows=rows, by_weight=by_weight, by_cut=by_cut, details=details)
    if not options.quick:
        page = DOCS / "confidence-evidence.md"
        shown = [name for name in rows[0] if name not in (f"true >= {CUT}", f"false >= {CUT}", "of these linked", "median s")]
        tables = [columns(rows, *shown), by_cut, by_weight]
        replace_section(page, "truth", "\n".join(markdown_table(table) for table in tables))


if __name__ == "__main__":
    main()
