"""
Single cells
============

Marker genes of ten kinds of blood cells, each with the genes that are correlated with it.

The data are log counts of 700 peripheral blood cells and 765 genes (the file pbmc68k_reduced.h5ad of the data folder).
"""

# sphinx_gallery_thumbnail_path = "evidence/figures/example-single-cells.png"

import warnings

import numpy as np
from _gallery import need, write
from matplotlib.figure import Figure
from sklearn.model_selection import StratifiedKFold, cross_val_score

from coterie import GroupDiscoveryClassifier
from coterie.report import annotate

try:
    import anndata
except ImportError:
    raise SystemExit("This example requires anndata. Install it with: pip install 'coterie[bio]'.") from None

SHOWN = 6
with warnings.catch_warnings(action="ignore"):  # The file has an old format of anndata.
    cells = anndata.read_h5ad(need("pbmc68k_reduced.h5ad"))
log_counts = cells.raw.to_adata()
kind = cells.obs["bulk_labels"].astype(str).to_numpy()

model = GroupDiscoveryClassifier(12, n_features_per_round=2, threshold=0.6, C=0.1)
model.fit(log_counts, kind)
print(model.groups_)
largest = cells.obs["bulk_labels"].mode()[0]
folds = StratifiedKFold(5, shuffle=True, random_state=0)
for what in ("support", "groups"):
    right = cross_val_score(model.set_params(predict_with=what), log_counts.X, kind, cv=folds).mean()
    print(f"held-out accuracy with {what}: {right:.1%} (largest class, {largest}: {np.mean(kind == largest):.1%})")
annotate(log_counts, model)  # var["support"], var["group"], var["correlation"], for scanpy
print(log_counts.var.loc[log_counts.var["group"] > 0, ["support", "group", "correlation"]].head(4).to_string())

genes = [gene for group in model.groups_ for gene in group.members[:SHOWN]]
kinds = sorted(set(kind), key=lambda one: -np.sum(kind == one))
expression = np.array([log_counts.X[kind == one][:, genes].mean(axis=0).A1 for one in kinds])
spread = expression.max(axis=0)
figure = Figure(figsize=(10.5, 4.4), layout="constrained")
ax = figure.add_subplot()
image = ax.imshow(expression / spread, aspect="auto", cmap="cividis")
figure.colorbar(image, ax=ax, label="mean log count / largest mean of the gene", pad=0.01)
labels = [f"{g.labels[i]}{' …' * (i == SHOWN - 1 < len(g) - 1)}" for g in model.groups_ for i in range(min(SHOWN, len(g)))]
ax.set_xticks(range(len(genes)), labels, rotation=90, fontsize=8)
ax.set_yticks(range(len(kinds)), [f"{one} ({np.sum(kind == one)})" for one in kinds], fontsize=8)
start = 0
for group in model.groups_:
    ax.get_xticklabels()[start].set_fontweight("bold")
    start += min(SHOWN, len(group))
    ax.axvline(start - 0.5, color="white", linewidth=2)
ax.set_title("support genes (bold) and their affiliated genes, by cell type (number of cells)")
write(figure, "single-cells")
