"""Files about the project agree with each other: version, citation, supported versions of Python, templates."""

import inspect
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import coterie

ROOT = Path(__file__).resolve().parents[1]
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
# Keys that the Citation File Format 1.2.0 requires, of the file and of a reference.
REQUIRED = {"cff-version", "message", "title", "authors"}
REQUIRED_OF_REFERENCES = {"type", "title", "authors"}


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def citation():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text())


@pytest.fixture(scope="module")
def workflow():
    return yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())


def release():
    """Version and date of the newest release in the changelog."""
    return re.search(r"^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)


def test_the_version_is_written_once(project):
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
    source = ROOT / project["tool"]["hatch"]["version"]["path"]
    assert re.findall(r'^__version__ = "(.+)"$', source.read_text(), flags=re.MULTILINE) == [coterie.__version__]


def test_citation_and_changelog_name_the_same_release(citation):
    assert (citation["version"], citation["date-released"]) == release().groups()


def test_the_version_is_that_release_or_a_later_one():
    """Between releases the version is that of the next one with .dev0."""
    released = tuple(map(int, release()[1].split(".")))
    here = tuple(map(int, re.match(r"(\d+)\.(\d+)\.(\d+)", coterie.__version__).groups()))
    assert here > released if coterie.__version__.endswith(".dev0") else here == released


def test_the_citation_has_the_required_keys(citation):
    assert citation.keys() >= REQUIRED
    assert citation["cff-version"] == "1.2.0"
    assert citation["license"] == "MIT"
    for reference in citation["references"]:
        assert reference.keys() >= REQUIRED_OF_REFERENCES, reference["title"]
        assert reference["year"] > 1900, reference["title"]
        assert reference["scope"], reference["title"]
        assert all(author.keys() == {"family-names", "given-names"} for author in reference["authors"]), reference["title"]


def test_the_citation_names_every_selector_with_a_paper(citation):
    """Every public class or function whose docstring has references is in the scope of at least one."""
    scopes = " ".join(reference["scope"] for reference in citation["references"])
    modules = [coterie, coterie.baselines, coterie.filters]
    named = {name: getattr(module, name) for module in modules for name in module.__all__ if name not in coterie._MODULES}
    cited = [name for name, value in named.items() if "\nReferences\n---" in (inspect.getdoc(value) or "")]
    assert len(cited) > 15
    assert [name for name in cited if name not in scopes] == []


def test_the_workflow_covers_the_supported_versions(project, workflow):
    classifiers = project["project"]["classifiers"]
    versions = [text.removeprefix("Programming Language :: Python :: ") for text in classifiers if ":: 3." in text]
    matrix = workflow["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python-version"] == versions
    assert project["project"]["requires-python"] == f">={versions[0]}"
    assert [system.split("-")[0] for system in matrix["os"]] == ["ubuntu", "macos", "windows"]
    assert workflow["jobs"].keys() >= {"lint", "tests", "lowest", "docs", "browser"}


def test_the_workflow_calls_existing_targets(workflow):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    steps = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
    assert {target for step in steps for target in re.findall(r"\bmake ([\w-]+)", step)} <= targets


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_issue_templates_are_complete(path):
    form = yaml.safe_load(path.read_text())
    assert form.keys() == {"name", "description", "labels", "body"}
    ids = [item["id"] for item in form["body"] if item["type"] != "markdown"]
    assert len(set(ids)) == len(ids) > 0
    assert all("label" in item["attributes"] for item in form["body"] if item["type"] != "markdown")


def test_make_help_and_the_contributing_page_name_every_target():
    text = (ROOT / "Makefile").read_text()
    targets = set(re.search(r"^\.PHONY: (.*)$", text, flags=re.MULTILINE)[1].split()) - {"help", "venv"}
    assert set(re.findall(r'@echo "  ([\w-]+) ', text)) == targets
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert {target for target in targets if f"`make {target}" not in page} == set()
