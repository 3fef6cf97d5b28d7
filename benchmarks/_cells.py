"""Single cells with known markers: blood cells with markers from the literature, and simulated cells."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from _real import data_path
from scipy import sparse

# Markers of each cell type in the data from reviews and tutorials of blood cells, and from the Azimuth reference of human
# blood (Hao et al., Cell 2021). Genes that the data do not contain are omitted. The lists were fixed before this script was
# run, but after groups of these data had been inspected (docs/evidence/examples.md).
CLASSIC = {
    "CD14+ Monocyte": "CD14 LYZ S100A8 S100A9 FCN1 FCGR3A MS4A7",
    "CD19+ B": "CD19 CD79A CD79B MS4A1",
    "CD34+": "CD34 KIT",
    "CD4+/CD25 T Reg": "CD3D IL7R FOXP3 IL2RA",
    "CD4+/CD45RA+/CD25- Naive T": "CD3D IL7R CCR7",
    "CD4+/CD45RO+ Memory": "CD3D IL7R S100A4",
    "CD56+ NK": "NKG7 GNLY NCAM1 KLRD1",
    "CD8+ Cytotoxic T": "CD3D CD8A CD8B GZMK",
    "CD8+/CD45RA+ Naive Cytotoxic": "CD3D CD8A CD8B CCR7",
    "Dendritic": "FCER1A CST3 CLEC10A CD1C",
}
AZIMUTH = {
    "CD14+ Monocyte": "CTSS FCN1 NEAT1 LYZ PSAP S100A9 AIF1 MNDA SERPINA1 TYROBP",
    "CD19+ B": "CD79A RALGPS2 CD79B MS4A1 BANK1 CD74 TNFRSF13C HLA-DQA1 IGHM MEF2C",
    "CD34+": "SPINK2 PRSS57 CYTL1 EGFL7 GATA2 CD34 C19orf77 AVP MYB LAPTM4B",  # C19orf77 is the earlier name of SMIM24
    "CD4+/CD25 T Reg": "RTKN2 FOXP3 CD4 IL2RA TIGIT CTLA4 FCRL3 LAIR2 IKZF2",
    "CD4+/CD45RA+/CD25- Naive T": "TCF7 CD4 CCR7 IL7R FHIT LEF1 MAL NOSIP LDHB PIK3IP1",
    "CD4+/CD45RO+ Memory": "IL7R TMSB10 CD4 ITGB1 LTB TRAC AQP3 LDHB IL32 MAL",
    "CD56+ NK": "NKG7 KLRD1 TYROBP GNLY FCER1G PRF1 CD247 KLRF1 CST7 GZMB",
    "CD8+ Cytotoxic T": "CCL5 GZMH CD8A TRAC KLRD1 NKG7 GZMK CST7 CD8B TRGC2",
    "CD8+/CD45RA+ Naive Cytotoxic": "CD8B S100B CCR7 RGS10 NOSIP LEF1 CRTAM CD8A OXNAD1",
    "Dendritic": "CD74 HLA-DPA1 HLA-DPB1 HLA-DQA1 CCDC88A HLA-DRA HLA-DMA CST3 HLA-DQB1 HLA-DRB1",
}


@dataclass(frozen=True)
class Cells:
    """Cells of known types.

    Attributes
    ----------
    name : str
        Name in the tables.
    adata : AnnData
        Log counts, with the cell types in ``obs["kind"]``.
    markers : dict of str to dict
        Known markers of each type that the data contain, by the name of the list.
    missing : dict of str to dict
        Known markers that the data do not contain.
    """

    name: str
    adata: Any
    markers: dict[str, dict[str, set[str]]]
    missing: dict[str, dict[str, set[str]]]


def blood() -> Cells:
    """Return 700 blood cells of ten types, with 765 genes."""
    import anndata

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # anndata warns about the old file format
        adata = anndata.read_h5ad(data_path("pbmc68k_reduced.h5ad"))
        logs = adata.raw.to_adata()
    clean = anndata.AnnData(
        logs.X, obs=pd.DataFrame({"kind": adata.obs["bulk_labels"]}), var=pd.DataFrame(index=logs.var_names)
    )
    here = set(clean.var_names)
    lists = {
        "classic": {kind: set(genes.split()) for kind, genes in CLASSIC.items()},
        "Azimuth": {kind: set(genes.split()) for kind, genes in AZIMUTH.items()},
    }
    return Cells(
        "blood",
        clean,
        {name: {kind: genes & here for kind, genes in one.items()} for name, one in lists.items()},
        {name: {kind: genes - here for kind, genes in one.items()} for name, one in lists.items()},
    )


def simulated(seed: int, n_cells: int = 1200, n_genes: int = 1500) -> Cells:
    """Return cells of six types with programmes of co-expressed genes; the rarest type is one cell in fifty.

    Each type has a programme of ten markers of decreasing strength, whose activity varies between cells. Types 0 and 1 share
    another programme. A programme of 40 genes (like that of the cell cycle) is independent of the types. Counts are negative
    binomial, with varying depth of the cells.
    """
    import anndata

    rng = np.random.default_rng(seed)
    shares = np.array([0.40, 0.25, 0.15, 0.12, 0.06, 0.02])
    kind = rng.permutation(np.repeat(np.arange(6), np.round(shares * n_cells).astype(int)))
    level = rng.lognormal(-1.5, 1.3, n_genes)
    log_mean = np.tile(np.log(level), (len(kind), 1))
    genes = rng.permutation(n_genes)
    markers = {f"kind {k}": {f"g{j}" for j in genes[10 * k : 10 * k + 10]} for k in range(6)}
    strengths = np.linspace(2.5, 0.7, 10)

    def raise_(chosen: np.ndarray, cells: np.ndarray, by: np.ndarray) -> None:
        log_mean[np.ix_(cells, chosen)] += rng.gamma(4.0, 0.25, len(cells))[:, None] * by

    for k in range(6):
        raise_(genes[10 * k : 10 * k + 10], np.flatnonzero(kind == k), strengths)
    raise_(genes[60:70], np.flatnonzero(kind <= 1), strengths)
    raise_(genes[70:110], np.flatnonzero(rng.random(len(kind)) < 0.3), np.full(40, 1.0))
    mean = np.exp(log_mean) * rng.lognormal(0.0, 0.4, len(kind))[:, None]
    counts = rng.poisson(mean * rng.gamma(2.0, 0.5, mean.shape)).astype(np.float64)
    depth = counts.sum(axis=1, keepdims=True)
    values = sparse.csr_matrix(np.log1p(counts / np.maximum(depth, 1.0) * np.median(depth)).astype(np.float32))
    obs = pd.DataFrame({"kind": pd.Categorical([f"kind {k}" for k in kind])}, index=[f"c{i}" for i in range(len(kind))])
    adata = anndata.AnnData(values, obs=obs, var=pd.DataFrame(index=[f"g{j}" for j in range(n_genes)]))
    return Cells("simulated", adata, {"planted": markers}, {"planted": {name: set() for name in markers}})
