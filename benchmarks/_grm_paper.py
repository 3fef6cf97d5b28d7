"""Tables 2 to 8 of the GRM paper (TKDE 2015), for the data sets that are available here."""

from __future__ import annotations

NAMES = {
    "laplacian": "Lap",
    "laplacian, full": "Lap full",
    "lgd": "LGD",
    "lgd among samples": "LGD*",
    "mcfs": "MCFS",
    "relieff": "RF",
    "fisher": "Fscore",
    "information_gain": "IG",
    "mid": "mRMR MID",
    "miq": "mRMR MIQ",
    "relieff 20 %": "RF 20 %",
}
# Methods that cannot be combined with GRM.
WITHOUT_GRM = ("mid", "miq", "relieff 20 %")
# The paper's Tables 2 to 7: (linear SVM, kNN, redundancy) of each score alone and with GRM.
PAPER: dict[str, dict[str, tuple[tuple[float | None, ...], ...]]] = {
    "Synthetic": {
        "laplacian": ((94.75, 92.00, 0.224), (96.25, 94.75, 0.103)),
        "lgd": ((94.50, 92.25, 0.200), (96.25, 94.75, 0.117)),
        "mcfs": ((95.50, 95.50, 0.203), (96.75, 96.00, 0.144)),
        "relieff": ((94.75, 92.50, 0.220), (95.00, 94.00, 0.152)),
        "fisher": ((94.25, 92.00, 0.305), (95.50, 94.50, 0.166)),
        "information_gain": ((94.25, 93.00, 0.280), (95.00, 93.75, 0.150)),
    },
    "GLIOMA": {
        "laplacian": ((50.00, 56.00, 0.719), (54.00, 68.00, 0.521)),
        "lgd": ((54.00, 60.00, 0.474), (64.00, 70.00, 0.268)),
        "mcfs": ((56.00, 64.00, 0.224), (66.00, 64.00, 0.051)),
        "relieff": ((62.00, 56.00, 0.459), (68.00, 66.00, 0.088)),
        "fisher": ((60.00, 62.00, 0.567), (64.00, 66.00, 0.273)),
        "information_gain": ((58.00, 70.00, 0.463), (64.00, 74.00, 0.200)),
    },
    "COIL20": {
        "laplacian": ((57.23, 68.58, 0.533), (74.62, 77.06, 0.394)),
        "lgd": ((67.63, 75.69, 0.469), (82.74, 80.21, 0.171)),
        "mcfs": ((80.03, 80.56, 0.087), (81.31, 83.26, 0.035)),
        "relieff": ((59.14, 71.11, 0.576), (82.88, 84.22, 0.161)),
        "fisher": ((45.45, 54.94, 0.390), (85.47, 86.03, 0.149)),
        "information_gain": ((20.62, 37.06, 0.248), (50.31, 52.90, 0.044)),
    },
    "BINALPHA": {
        "laplacian": ((37.49, 29.18, 0.129), (42.14, 38.22, 0.029)),
        "lgd": ((36.72, 29.53, 0.128), (47.88, 37.81, 0.020)),
        "mcfs": ((45.47, 39.43, 0.028), (50.45, 43.23, 0.012)),
        "relieff": ((25.26, 19.29, 0.154), (44.05, 41.41, 0.021)),
        "fisher": ((29.20, 21.37, 0.157), (48.09, 47.44, 0.025)),
        "information_gain": ((25.71, 22.23, 0.113), (44.47, 39.10, 0.027)),
    },
    "DIGIT": {
        "laplacian": ((94.50, 94.85, 0.341), (95.90, 95.30, 0.063)),
        "lgd": ((93.65, 94.15, 0.352), (96.90, 97.30, 0.054)),
        "mcfs": ((96.55, 95.55, 0.076), (96.70, 96.10, 0.025)),
        "relieff": ((88.15, 84.25, 0.196), (94.15, 92.05, 0.031)),
        "fisher": ((96.10, 95.45, 0.266), (97.15, 96.65, 0.056)),
        "information_gain": ((88.95, 90.60, 0.205), (93.95, 94.75, 0.037)),
    },
}
PAPER["SRBCT"] = {
    "laplacian": ((49.33, 51.84, 0.247), (54.04, 53.18, 0.071)),
    "lgd": ((50.12, 61.73, 0.144), (78.67, 77.02, 0.036)),
    "mcfs": ((60.10, 41.80, 0.132), (65.06, 47.69, 0.029)),
    "relieff": ((85.73, 78.90, 0.185), (88.08, 91.61, 0.030)),
    "fisher": ((95.29, 93.41, 0.181), (96.47, 95.29, 0.069)),
    "information_gain": ((96.47, 79.53, 0.120), (97.71, 96.47, 0.025)),
}
# mRMR (the paper does not name the scheme) and ReliefF on a fifth of the labels. The paper does not give their redundancy.
_MRMR = {
    "Synthetic": (85.75, 84.50, 0.480),
    "GLIOMA": (68.00, 62.00, 0.288),
    "SRBCT": (96.74, 95.82, 0.105),
    "COIL20": (55.80, 64.08, 0.110),
    "BINALPHA": (27.13, 22.90, 0.075),
    "DIGIT": (89.10, 89.05, 0.301),
}
_RF_20 = {
    "Synthetic": (94.75, 88.81, None),
    "GLIOMA": (58.00, 52.50, None),
    "SRBCT": (75.27, 56.43, None),
    "COIL20": (53.44, 57.07, None),
    "BINALPHA": (25.11, 20.74, None),
    "DIGIT": (83.78, 77.79, None),
}
for name, figures in PAPER.items():
    figures["mid"] = figures["miq"] = (_MRMR[name],)
    figures["relieff 20 %"] = (_RF_20[name],)
# Eq. 28 of the paper is the graph of all pairs; the nearest neighbours are those of He et al. (2005).
for figures in PAPER.values():
    figures["laplacian, full"] = figures["laplacian"]
# The paper describes neighbours among the values of a feature; neighbours among the samples may be what it measured.
for figures in PAPER.values():
    figures["lgd among samples"] = figures["lgd"]
# Data sets of the paper that are not available, with the most similar ones at hand, and classes, samples and features of both.
SUBSTITUTES = {
    "LUNG": ("su", "5, 203, 3,312", "tumours"),
    "AMLALL": ("shipp", "2, 72, 7,219", "lymphoma"),
    "ProCancer": ("gordon", "2, 89, 15,154", "lung"),
    "LEU": ("duke", "2, 72, 3,571", "breast"),
    "PalmData": ("usps", "100, 2,000, 256", "digits, 2,000 of 7,291 samples"),
    "CALTECH": ("orl", "7, 441, 2,218", "faces"),
}
# Table 8: correct-move rates of variance, Laplacian score and LGD. The other data sets of that table are not available here.
MOVES = {"GLIOMA": (0.908, 0.732, 0.872), "SRBCT": (0.936, 0.960, 0.944)}
