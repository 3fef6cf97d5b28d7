"""Generate the API page from the ``__all__`` of the public modules, so that every new name is included."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

# In the order of the page.
MODULES = ("filters", "baselines", "metrics", "datasets", "data", "plots", "report", "replication", "probing", "correlation")


def write(folder: Path) -> None:
    """Write ``api.rst``. An unchanged file is not rewritten, so that its modification time stays the same."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join([*_head(), *_module("coterie"), *(line for name in MODULES for line in _module(f"coterie.{name}"))])
    path = folder / "api.rst"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def names(module: str) -> list[str]:
    """Return the public classes and functions of a module that the package itself does not export."""
    home = import_module(module)
    import coterie

    again = set(coterie.__all__) if module != "coterie" else set()  # Each name has one page.
    return [name for name in home.__all__ if name not in again and _documented(getattr(home, name))]


def _documented(value: object) -> bool:
    """Return True for classes and functions; constants have no docstring."""
    return inspect.isclass(value) or inspect.isfunction(value)


def _head() -> list[str]:
    return ["The Python API", "==============", "", "Generated from the docstrings; see also ``help(coterie.load)``.", ""]


def _module(name: str) -> list[str]:
    summary = (inspect.getdoc(import_module(name)) or "").split("\n\n")[0].replace("\n", " ")
    rows = [f"   {name}.{member}" for member in names(name)]
    return [name, "-" * len(name), "", summary, "", ".. autosummary::", "   :toctree: .", "", *rows, ""]
