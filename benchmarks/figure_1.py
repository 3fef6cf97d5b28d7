"""TPAMI Fig. 1 on available data: exact distribution of all pairwise correlations of text and of genotypes.

Writes docs/evidence/figure-1.png and prints the tables of docs/evidence/correlation-profile-evidence.md.
"""

from __future__ import annotations

import time

from _real import data_path
from _record import read_arguments, write_results
from _tables import DOCS, print_table

from coterie import CorrelationProfile, correlation_profile
from coterie.data import open_features

FILES = {
    "20 Newsgroups, word 1-2-grams": "20news_bigrams.npz",
    "1000 Genomes, European samples": "plink_eur/EUR_subset.bed",
}


def draw(profiles: dict[str, CorrelationProfile]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.8), layout="constrained")
    for axes, (title, profile) in zip(figure.subplots(1, len(profiles), sharey=True), profiles.items(), strict=True):
        profile.plot(axes, title=f"{title}\n{profile.n_pairs:.3g} pairs of {profile.n_features:,} features")
    figure.savefig(DOCS / "figure-1.png", dpi=110)


def main() -> None:
    options = read_arguments(__doc__, repeats=1)
    profiles, rows = {}, []
    for title, name in FILES.items():
        X = open_features(data_path(name), label=False).source
        began = time.perf_counter()
        profile = correlation_profile(X, n_jobs=options.threads, verbose=1)
        seconds = time.perf_counter() - began
        profiles[title] = profile
        print(f"\n{title}, {X.shape[0]:,} x {X.shape[1]:,}: {seconds:.1f} s\n{profile}")
        rows.append({"data": title, "pairs": profile.n_pairs, "seconds": seconds, **_shares(profile)})
    print_table("Share of pairs with |correlation| at or above a threshold", rows)
    draw(profiles)
    write_results("figure_1", options, rows=rows, profiles={t: p.to_dict() for t, p in profiles.items()})


def _shares(profile: CorrelationProfile) -> dict[str, str]:
    return {f">= {t:g}": f"{100 * profile.share_at_least(t):.4f} %" for t in (0.1, 0.3, 0.5, 0.7, 0.9)}


if __name__ == "__main__":
    main()
