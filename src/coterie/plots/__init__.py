"""Pictures of groups, selections and comparisons (they need ``pip install coterie[plot]``).

Every function draws on the axes it is given, or else on a figure of its own, and returns the figure. None of them goes
through pyplot: no figure is left open, no backend is chosen, nothing is shown. ``figure.savefig("groups.png")`` writes a file.
"""

from coterie.plots.comparison import comparison_curves

__all__ = ["comparison_curves"]
