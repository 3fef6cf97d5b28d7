"""Dependencies inside data/: readers do not import the store, and the store only imports the reader interface."""

import pytest

from tests.test_architecture import MODULES, ROOT, imports_of, name_of

READERS, STORE = "coterie.data.readers", "coterie.data.store"
# Reader modules that the store may import: the base class, and the conversion of its blocks to features.
HANDED_OVER = (f"{READERS}.reader", f"{READERS}.collect")


def within(name, *packages):
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def modules_in(package):
    return [path for path in MODULES if within(name_of(path), package)]


def test_the_packages_are_where_the_borders_are():
    assert {path.parent for path in modules_in(READERS)} == {ROOT / "data" / "readers"}
    assert {path.parent for path in modules_in(STORE)} == {ROOT / "data" / "store"}


@pytest.mark.parametrize("path", modules_in(READERS), ids=name_of)
def test_readers_do_not_import_the_store(path):
    assert [name for name in imports_of(path) if within(name, STORE)] == []


@pytest.mark.parametrize("path", modules_in(STORE), ids=name_of)
def test_the_store_imports_no_format(path):
    assert [name for name in imports_of(path) if within(name, READERS) and not within(name, *HANDED_OVER)] == []


def test_only_opening_imports_readers_and_stores():
    both = [
        name_of(path)
        for path in MODULES
        if name_of(path).startswith("coterie.data.")
        and not within(name_of(path), READERS, STORE)
        and any(within(name, READERS) for name in imports_of(path))
        and any(within(name, STORE) for name in imports_of(path))
    ]
    assert both == ["coterie.data.opening"]
