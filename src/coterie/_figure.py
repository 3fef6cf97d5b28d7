"""Matplotlib figure that notebooks display. Imports matplotlib, so import this module only to draw."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.figure import Figure

_DPI = 120


class Picture(Figure):
    """Figure that is not registered with pyplot and is displayed as the last line of a notebook cell."""

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        """Return the figure as PNG at its drawing size."""
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=_DPI)
        width, height = self.get_size_inches()
        return file.getvalue(), {"width": round(96 * float(width)), "height": round(96 * float(height))}
