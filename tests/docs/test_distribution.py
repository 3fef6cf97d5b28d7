"""The wheel and the sdist, as a user gets them: built, installed into an empty environment, tried.

Slow: the environment fetches all dependencies. `make test-slow` runs it.
"""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow


def run(*words, cwd, **more):
    environment = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "PYTHONHOME"}}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=environment, capture_output=True, text=True, check=False, **more
    )
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """The files that git knows, and nothing that lies about."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("no git checkout")
    folder = tmp_path_factory.mktemp("checkout")
    for name in run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def packages(checkout):
    """The sdist, and the wheel that is built from it."""
    pytest.importorskip("build", reason="build is not installed (pip install '.[dev]')")
    run(sys.executable, "-m", "build", "--outdir", checkout / "dist", cwd=checkout)
    (sdist,) = (checkout / "dist").glob("*.tar.gz")
    (wheel,) = (checkout / "dist").glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def installed(packages, tmp_path_factory):
    """An environment of its own with the wheel, and no compiler or Node on its path."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / "bin"
    run(programs / "python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:", f"{packages[1]}[all]", cwd=folder)
    return folder, programs


def test_metadata_is_clean(packages):
    pytest.importorskip("twine", reason="twine is not installed (pip install '.[dev]')")
    printed = run(sys.executable, "-m", "twine", "check", "--strict", *packages, cwd=ROOT)
    assert printed.count("PASSED") == 2


def test_no_file_is_missing(packages):
    """Every file of the package that is not made on the way: modules, templates, assets, the mark of types, the licence."""
    sdist, wheel = packages
    source = ROOT / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for path in (source / "coterie").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in {".pyc", ".nbi", ".nbc"}
    }
    names = set(zipfile.ZipFile(wheel).namelist())
    assert not wanted - names
    assert {name.split("/")[0] for name in names} <= {"coterie", next(n for n in names if "dist-info" in n).split("/")[0]}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    with tarfile.open(sdist) as archive:
        packed = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "Makefile", "docs/groups.png", "docs/conf.py"} <= packed
    assert {f"src/{name}" for name in wanted} <= packed


def test_nothing_of_the_checkout_is_needed(installed):
    folder, programs = installed
    home = run(programs / "python", "-c", "import coterie; print(coterie.__file__)", cwd=folder).strip()
    assert Path(home).is_relative_to(folder)
    assert "(editable" not in run(programs / "python", "-m", "pip", "list", cwd=folder)


def test_from_the_readme_to_a_report(installed):
    """The README's own lines, one after the other: what a new user does first."""
    folder, programs = installed
    text = (ROOT / "README.md").read_text()
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE))
    (folder / "readme.py").write_text(code)
    printed = run(programs / "python", "readme.py", cwd=folder)
    assert printed == re.search(r"^```output\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)[1]
    (command,) = re.findall(r"^coterie (discover .*)$", text, flags=re.MULTILINE)
    run(programs / "coterie", *command.split(), cwd=folder)
    result = folder / "results"
    assert json.loads((result / "result.json").read_text())["held_out"]
    assert "diagnosis" in (result / "report.html").read_text()
    with (result / "groups.csv").open() as file:
        assert {row["role"] for row in csv.DictReader(file)} >= {"support"}


def test_demo(installed):
    folder, programs = installed
    printed = run(programs / "coterie", "demo", "--n-features", "500", "-o", "demo", cwd=folder)
    assert "Groups" in printed
    assert (folder / "demo" / "report.html").exists()
