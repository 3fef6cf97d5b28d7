"""Figures of the examples for the gallery: matplotlib's own scraper sees only those made by pyplot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def scrape(block: Any, variables: dict[str, Any], configuration: dict[str, Any]) -> str:
    """Save each figure among the variables of an example."""
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
    """By this name sphinx-gallery asks a module for its scraper."""
    return scrape
