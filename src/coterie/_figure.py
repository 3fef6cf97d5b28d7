"""A matplotlib figure that a notebook shows without being told to. (Imports matplotlib: only import it to draw.)"""

from __future__ import annotations

import io
from typing import Any

from matplotlib.figure import Figure

_DPI = 120


class Picture(Figure):
    """A figure that pyplot does not know of, and that is a picture where it is the last line of a notebook's cell."""

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        """The picture, at the size in which it was drawn."""
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=_DPI)
        width, height = self.get_size_inches()
        return file.getvalue(), {"width": round(96 * float(width)), "height": round(96 * float(height))}
