"""Reports for the browser tests."""

import numpy as np

import coterie
from coterie import FeatureGroup, FeatureGroups, GroupDiscoveryClassifier, GroupDiscoveryRegressor, group_confidence
from coterie.data import as_source
from coterie.report import Discovery, HeldOut
from coterie.report.assembly import assemble, open_data
from coterie.report.page import render
from tests.conftest import grouped_matrix

HOSTILE_NAMES = [
    "<script>window.hacked = 1</script>",
    "\"'><img src=x onerror='window.hacked = 1'>",
    "two\nlines\r\nand a\ttab",
    "\u202eright to left\u2066",
    "L" * 10_000,
    "=cmd()",
    "+1+1|' /C calc'!A1",
    "-0.5",
    "@SUM(A1)",
    "]]>--></script><svg onload=window.hacked=1>",
    "\udcff lone",
    "javascript:window.hacked=1",
    "\x00\x1b[2J",
    "בדיקה עברית",
]


def small(path):
    """Write a page with two classes, confidences and held-out scores: all content that a page can have."""
    X, y = grouped_matrix(np.random.default_rng(0), n_samples=120, n_features=40, n_factors=14)
    names = [f"gene {j}" for j in range(40)]
    labels = np.where(y == y[0], "ill", "well")
    model = GroupDiscoveryClassifier(8, threshold=0.7).fit(source := as_source(X, names), labels)
    group_confidence(model, source, labels, n_pairs=4, n_permutations=2, random_state=0).attach_to(model)
    coterie.group_effects(model, source, labels).attach_to(model)
    info = {"chromosome": [str(1 + j // 20) for j in range(40)], "position": np.arange(40) * 1000}
    content = assemble(
        model, open_data(source, labels, feature_info=info, name="genes.csv", label="diagnosis"), (8, 5)
    ).to_dict()
    content["held_out"] = HeldOut("accuracy", [0.9, 0.8, 0.85], 0.5, 1.0).to_dict()
    content["validation"] = {
        "score": "accuracy", "sizes": [1, 2, 4, 8, 12], "mean": [0.6, 0.7, 0.8, 0.85, 0.84], "error": [0.02] * 5, "folds": 5,
        "chosen": 8, "training": {"sizes": [1, 4, 8], "score": [0.7, 0.9, 1.0]}, "constant": 0.5,
    }  # fmt: skip
    path.write_text(render(content), encoding="utf-8")
    return model


def hostile(path):
    """Write a page with hostile names only."""
    X, _ = grouped_matrix(np.random.default_rng(1), n_samples=90, n_features=40, n_factors=14)
    names = [HOSTILE_NAMES[j % len(HOSTILE_NAMES)] + (f" {j}" if j >= len(HOSTILE_NAMES) else "") for j in range(40)]
    labels = np.array([HOSTILE_NAMES[0], HOSTILE_NAMES[3], HOSTILE_NAMES[5]])[np.digitize(X[:, 0] + X[:, 5], [-0.7, 0.7])]
    model = GroupDiscoveryClassifier(10, threshold=0.7).fit(source := as_source(X, names), labels)
    info = {HOSTILE_NAMES[1]: [HOSTILE_NAMES[j % len(HOSTILE_NAMES)] for j in range(40)],
            "chromosome": [HOSTILE_NAMES[j % 3] for j in range(40)],
            "position": np.arange(40)}  # fmt: skip
    page = coterie.report(
        model, source, labels, path, name=HOSTILE_NAMES[0], label=HOSTILE_NAMES[1], feature_info=info, command=HOSTILE_NAMES[9]
    )
    assert page.path == path
    return model, names


def regression(path):
    rng = np.random.default_rng(2)
    X = rng.binomial(2, 0.3, (150, 30)).astype(float)
    model = GroupDiscoveryRegressor(3).fit(X, X[:, 3] - X[:, 7] + rng.standard_normal(150))
    coterie.report(model, X, X[:, 3] - X[:, 7] + rng.standard_normal(150), path)


def many(path, n_groups=10_000, n_members=40):
    """Write a page with ten thousand groups and four hundred thousand members, from a dictionary."""
    rng = np.random.default_rng(0)
    correlation = np.sort(rng.uniform(0.7, 1, (n_groups, n_members - 1)))[:, ::-1]
    confidence, effect = rng.uniform(0, 1, n_groups), rng.standard_normal(n_groups)
    groups = FeatureGroups(
        FeatureGroup(
            g * n_members, np.arange(g * n_members + 1, (g + 1) * n_members), correlation[g], score=1.0, weight=effect[g],
            names=tuple(f"rs{37 * (g * n_members + k) + 1_000_000}" for k in range(n_members)), round=g // 10 + 1,
            confidence=confidence[g], shares=rng.integers(0, 51, n_members) / 50, effect=effect[g],
        )
        for g in range(n_groups)
    )  # fmt: skip
    X, y = grouped_matrix(np.random.default_rng(0))
    model = GroupDiscoveryClassifier(2).fit(X, y)
    model.groups_ = groups
    data = {"path": "cohort.bed", "samples": 20_000, "features": 1_000_000}
    content = Discovery(model, data, "classification", held_out=HeldOut("accuracy", [0.8, 0.7, 0.75], 0.5, 0.9)).to_dict()
    shuffled = [sorted(rng.uniform(0, 0.6, 100).tolist(), reverse=True)]
    content["confidence"] = {
        "n_pairs": 25, "n_permutations": 1, "seed": 0, "confidence": confidence.tolist(), "permuted": shuffled,
        "expected_false": (100 * (1 - confidence)).tolist(), "false_share": (1 - confidence).tolist(),
    }  # fmt: skip
    path.write_text(render(content), encoding="utf-8")
