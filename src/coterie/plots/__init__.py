"""Pictures of groups, selections and comparisons (they need ``pip install coterie[plot]``).

Every function draws on the axes it is given, or else on a figure of its own, and returns the figure. None of them goes
through pyplot: no figure is left open, no backend is chosen. A notebook shows the figure where it is the last line of a cell;
``figure.savefig("groups.png")`` writes a file.
"""

from coterie.plots.comparison import comparison_curves
from coterie.plots.groups import affiliated_counts, group_graph
from coterie.plots.models import class_effects, effect_confidence, feature_scatter, member_correlations, score_curve
from coterie.plots.places import manhattan, pixel_map

__all__ = [
    "affiliated_counts",
    "class_effects",
    "comparison_curves",
    "effect_confidence",
    "feature_scatter",
    "group_graph",
    "manhattan",
    "member_correlations",
    "pixel_map",
    "score_curve",
]
