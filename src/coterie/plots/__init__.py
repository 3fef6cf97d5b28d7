"""Figures of groups, selections and comparisons (requires ``pip install coterie[plot]``).

Every function draws on the given axes or on a new figure, and returns the figure. The functions do not use pyplot: no figure
stays open, and no backend is selected. A notebook shows the figure if it is the last line of a cell.
``figure.savefig("groups.png")`` writes a file.
"""

from coterie.plots.comparison import comparison_curves
from coterie.plots.groups import affiliated_counts, group_graph
from coterie.plots.heldout import calibration_curve, confusion_table, predicted_observed, roc_curves
from coterie.plots.models import class_effects, effect_confidence, feature_scatter, member_correlations, score_curve
from coterie.plots.places import manhattan, pixel_map
from coterie.plots.survival import survival_curves

__all__ = [
    "affiliated_counts",
    "calibration_curve",
    "class_effects",
    "comparison_curves",
    "confusion_table",
    "effect_confidence",
    "feature_scatter",
    "group_graph",
    "manhattan",
    "member_correlations",
    "pixel_map",
    "predicted_observed",
    "roc_curves",
    "score_curve",
    "survival_curves",
]
