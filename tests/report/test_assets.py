"""Script and style of the package match their sources."""

import hashlib
import json
import re
from importlib import resources
from pathlib import Path

import pytest

ASSETS = resources.files("coterie.report") / "assets"
SOURCES = Path(__file__).parents[2] / "report-js"
MANIFEST = json.loads((ASSETS / "manifest.json").read_text())


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("name", sorted(MANIFEST["bundle"]))
def test_the_bundle_is_the_one_that_was_built(name):
    assert digest(ASSETS / name) == MANIFEST["bundle"][name], f"{name} was changed by hand. Run `make report-js`."


@pytest.mark.skipif(not SOURCES.is_dir(), reason="the sources of the script are not in this tree")
def test_the_bundle_is_that_of_the_sources():
    kept = [path for path in SOURCES.rglob("*") if "node_modules" not in path.parts and path.is_file()]
    known = {
        path.relative_to(SOURCES).as_posix(): digest(path) for path in kept if path.suffix in (".js", ".mjs", ".css", ".json")
    }
    assert known == MANIFEST["sources"], "The sources have changed. Run `make report-js`."


def test_packages_are_pinned_and_licensed():
    if not SOURCES.is_dir():
        pytest.skip("the sources of the script are not in this tree")
    wanted = json.loads((SOURCES / "package.json").read_text())
    versions = {**wanted["dependencies"], **wanted["devDependencies"]}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions.values())
    lock = json.loads((SOURCES / "package-lock.json").read_text())
    # The registry of packages is a setting of each machine.
    assert not [name for name, package in lock["packages"].items() if "resolved" in package]
    licences = (ASSETS / "LICENSES.txt").read_text()
    for name, version in wanted["dependencies"].items():
        assert f"{name} {version} (ISC)" in licences


@pytest.mark.skipif(not SOURCES.is_dir(), reason="the sources of the script are not in this tree")
@pytest.mark.parametrize("path", [*SOURCES.glob("src/**/*.js"), *SOURCES.glob("*.*js")], ids=lambda path: path.name)
def test_lines_of_the_script_are_short(path):
    """Prettier does not wrap long strings and comments."""
    assert max(map(len, path.read_text(encoding="utf-8").splitlines())) <= 100


def test_script_complies_with_the_policy():
    script = (ASSETS / "report.js").read_text(encoding="utf-8")
    for forbidden in (
        "eval(", "new Function", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "fetch(", "XMLHttpRequest",
        "</script", "localStorage", "document.cookie", "WebSocket", "importScripts",
    ):  # fmt: skip
        assert forbidden not in script, forbidden
    assert len(script) < 200_000
