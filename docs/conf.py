"""The documentation site: ``make docs`` builds it into docs/_build/html, without the network."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]  # this checkout, not another that is installed
# The examples find no data sets here, whatever lies beside the project: the site is the same everywhere.
os.environ["COTERIE_DATA"] = str(HERE / "_build" / "no-data")

import command_pages  # noqa: E402
import public_names  # noqa: E402

import coterie  # noqa: E402

project = "Coterie"
author = "The Coterie developers"
version = release = coterie.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
exclude_patterns = ["_build", "scripts", "_ext", "**/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
root_doc = "index"

# Pages
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

# API: what ``__all__`` names, from docstrings; what scikit-learn's base classes add is documented there.
public_names.write(HERE / "reference" / "generated")
command_pages.write(HERE / "reference" / "generated")
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
autodoc_default_options = {"members": True, "inherited-members": True, "member-order": "bysource"}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False  # types are words for people, not names to look up
napoleon_custom_sections = [("Attributes", "params_style")]
suppress_warnings = ["ref.footnote"]  # the references of a docstring are a list

sphinx_gallery_conf = {
    "examples_dirs": [str(HERE.parent / "examples")],
    "gallery_dirs": ["learn/gallery"],
    "filename_pattern": r"digits\.py$",  # the others need data sets that do not ship
    "ignore_pattern": r"(_gallery|spectral_embedded_clustering)\.py$",
    "image_scrapers": ("gallery_figures",),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "within_subsection_order": "FileNameSortKey",
    "only_warn_on_example_error": False,
}

# The site
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "Coterie"
html_static_path: list[str] = []
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
copyright = "the Coterie developers, MIT licence"

# Links: those between pages are checked by the build itself; make docs-links checks anchors and files as well.
linkcheck_ignore = [r"https?://.*"]


def _pages_of_the_root(app, name, source):
    """Pages of the project's root are pages of the site, and links to them lead there."""
    homes = {"SECURITY.md": "development/security.md", "CHANGELOG.md": "development/changelog.md"}
    for file, home in homes.items():
        if f"{name}.md" == home:
            text = (HERE.parent / file).read_text(encoding="utf-8")
            text = re.sub(r"\]\(docs/", "](../", text)
            source[0] = re.sub(r"\[([^\]]*)\]\((?:src|tests|benchmarks)/[^)]*\)", r"\1", text)  # no page to link to
        way = Path(os.path.relpath(HERE / home, (HERE / name).parent)).as_posix()
        source[0] = re.sub(rf"\]\((\.\./)+{re.escape(file)}(?=[)#])", f"]({way}", source[0])


def _skip(app, what, name, member, skip, options):
    """Leave out what scikit-learn and Python's own classes bring along."""
    function = member.fget if isinstance(member, property) else member
    module = getattr(function, "__module__", None) or ""
    if module and not module.startswith("coterie"):
        return True
    if name.startswith("set_") and name.endswith("_request"):
        return True
    return None


def setup(app):
    """Connect what is above."""
    app.connect("source-read", _pages_of_the_root)
    app.connect("autodoc-skip-member", _skip)
