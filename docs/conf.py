"""Configuration of the documentation site. ``make docs`` builds it in docs/_build/html, without network access."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]  # Document this checkout, not an installed copy.
# Hide local data sets from the examples, so that the site is the same on every machine.
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

# API: the names in ``__all__``, from docstrings. Members inherited from scikit-learn are left out (see _skip).
public_names.write(HERE / "reference" / "generated")
command_pages.write(HERE / "reference" / "generated")
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
autodoc_default_options = {"members": True, "inherited-members": True, "member-order": "bysource"}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False  # Types in docstrings are prose, not references.
napoleon_custom_sections = [("Attributes", "params_style")]
suppress_warnings = ["ref.footnote"]  # References in docstrings are plain lists.

sphinx_gallery_conf = {
    "examples_dirs": [str(HERE.parent / "examples")],
    "gallery_dirs": ["learn/gallery"],
    "filename_pattern": r"digits\.py$",  # The other examples require data sets that are not part of the package.
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

# The build checks links between pages; docs/scripts/pages.py checks anchors and files. Links to other sites are not followed.
linkcheck_ignore = [r"https?://.*"]


# Pages of the repository root that are also pages of the site.
_ROOT_PAGES = {
    "CHANGELOG.md": "development/changelog.md",
    "CODE_OF_CONDUCT.md": "development/code-of-conduct.md",
    "CONTRIBUTING.md": "development/contributing.md",
    "SECURITY.md": "development/security.md",
}


def _include_root_pages(app, name, source):
    """Show pages of the repository root on the site, and redirect links to them."""
    here = (HERE / name).parent
    for file, home in _ROOT_PAGES.items():
        if f"{name}.md" == home:
            text = (HERE.parent / file).read_text(encoding="utf-8")
            text = re.sub(r"\]\((?=[A-Z_]+\.md[)#])", "](../../", text)  # The redirection below applies to these.
            text = re.sub(r"\]\(docs/", "](../", text)
            # Files outside docs are not part of the site: keep the text of the link only.
            source[0] = re.sub(r"\[([^\]]*)\]\((?:src|tests|benchmarks)/[^)]*\)", r"\1", text)
    for file, home in _ROOT_PAGES.items():
        target = Path(os.path.relpath(HERE / home, here)).as_posix()
        source[0] = re.sub(rf"\]\((\.\./)+{re.escape(file)}(?=[)#])", f"]({target}", source[0])


def _skip(app, what, name, member, skip, options):
    """Leave out members that come from scikit-learn and from built-in classes."""
    function = member.fget if isinstance(member, property) else member
    module = getattr(function, "__module__", None) or ""
    if module and not module.startswith("coterie"):
        return True
    if name.startswith("set_") and name.endswith("_request"):
        return True
    return None


def setup(app):
    """Connect the handlers."""
    app.connect("source-read", _include_root_pages)
    app.connect("autodoc-skip-member", _skip)
