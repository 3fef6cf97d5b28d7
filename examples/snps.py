"""
SNPs
====

Blocks of linked variants that are associated with a trait, among 54,051 SNPs of 369 Europeans.

Each group is a linkage block, not a single SNP. The threshold of 0.5 corresponds to r² = 0.25. The figure shows the groups on
top of the p-values of single SNPs, as in genome-wide association studies. The data are from 1000 Genomes with a simulated
trait (the folder plink_eur of the data folder).
"""

# sphinx_gallery_thumbnail_path = "evidence/figures/example-snps.png"

import numpy as np
from _gallery import need, write
from matplotlib.figure import Figure
from sklearn.model_selection import KFold, cross_val_score

from coterie import GroupDiscoveryRegressor, association
from coterie.data import open_features
from coterie.plots.canvas import COLOURS

folder = need("plink_eur")
data = open_features(folder / "EUR_subset.bed", phenotype=folder / "EUR_subset.pheno2.covars")
chromosome, position = np.asarray(data.feature_info["chromosome"]), np.asarray(data.feature_info["position"])

model = GroupDiscoveryRegressor(8, n_features_per_round=1, threshold=0.5, C=0.01, standardize=True)
model.fit(data)
genotypes = data.source.columns(np.arange(data.source.shape[1]))
held_out = cross_val_score(model, genotypes, data.y, cv=KFold(5, shuffle=True, random_state=0)).mean()
print(
    f"{len(model.groups_)} groups of {len(model.groups_.members)} SNPs: training R² {model.score(data.source, data.y):.0%}",
    end=", ",
)
print(f"held-out R² {held_out:.0%} (few samples, many weak effects)")

alone = association(data)  # every SNP separately
for clump in alone.attach(model.groups_).clumps():
    members = clump["SP2"]
    print(f"{clump['CHR']:>3}{clump['BP']:>10}  {clump['SNP']:<12}{clump['P']:>9.1e}{clump['TOTAL']:>4}", end="  ")
    print(members[:60] + "…" * (len(members) > 60))

strength = -np.log10(alone.p_value)
chromosomes, code = np.unique(chromosome.astype(int), return_inverse=True)
length = np.array([position[code == c].max() for c in range(len(chromosomes))])
offset = np.append(0, np.cumsum(length + 5e6))
place = offset[code] + position

figure = Figure(figsize=(10.5, 5.6), layout="constrained")
grid = figure.add_gridspec(2, 4)
whole = figure.add_subplot(grid[0, :])
whole.scatter(place, strength, s=2, c=np.where(code % 2, "0.55", "0.75"), linewidths=0, rasterized=True)
for number, group in enumerate(model.groups_):
    look = {"color": COLOURS[number % 7], "linewidths": 0}
    whole.scatter(place[group.affiliated], strength[group.affiliated], s=16, **look)
    whole.scatter(place[group.support], strength[group.support], s=40, marker="D", **look)
    peak = (place[group.support], strength[group.support])
    whole.annotate(group.labels[0], peak, (0, 6), textcoords="offset points", ha="center", fontsize=7)
    if number < 4:  # Magnify the first blocks.
        near = figure.add_subplot(grid[1, number])
        span = position[group.members]
        around = (chromosome == chromosome[group.support]) & (position > span.min() - 2e5) & (position < span.max() + 2e5)
        near.scatter(position[around] / 1e6, strength[around], s=5, color="0.7", linewidths=0)
        near.scatter(position[group.affiliated] / 1e6, strength[group.affiliated], s=22, **look)
        near.scatter(position[group.support] / 1e6, strength[group.support], s=50, marker="D", **look)
        near.set_title(f"{group.labels[0]} and {len(group) - 1} linked", fontsize=9)
        near.set_xlabel(f"chromosome {chromosome[group.support]} (Mb)", fontsize=8)
        near.set_ylabel("" if number else "−log10 p", fontsize=8)
        near.tick_params(labelsize=7)
whole.set_xticks(offset[:-1] + length / 2, [f"chromosome {c}" for c in chromosomes])
whole.set(ylabel="−log10 p of single SNPs", ylim=(0, np.nanmax(strength) + 0.9), xlim=(0, offset[-1]))
whole.set_title("support SNPs (diamonds) and their linked SNPs")
write(figure, "snps")
