"""Collect the figures of the examples for the gallery; matplotlib's own scraper finds only those of pyplot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def scrape(block: Any, variables: dict[str, Any], configuration: dict[str, Any]) -> str:
    """Save each figure among the variables of an example, and return the markup that shows them."""
    paths = []
    shown = variables.setdefault("shown_figures", set())
    for value in variables["example_globals"].values():
        if isinstance(value, Figure) and id(value) not in shown:
            shown.add(id(value))
            path = next(variables["image_path_iterator"])
            value.savefig(path, dpi=80)
            paths.append(str(Path(path)))
    return str(figure_rst(paths, configuration["src_dir"]))


def _get_sg_image_scraper() -> Any:
    """Return the scraper; sphinx-gallery looks for a function of this name."""
    return scrape
