"""The HTML representation of an estimator links to its page on the documentation site, if there is one."""

import importlib.util
import inspect
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

import coterie
from coterie import GroupDiscoveryClassifier, _sklearn
from coterie.filters.selector import FilterSelector

SITE = "https://coterie.example/stable"
_path = Path(__file__).resolve().parents[1] / "docs" / "_ext" / "public_names.py"
_spec = importlib.util.spec_from_file_location("public_names", _path)
public_names = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(public_names)


def documented_estimators():
    """Public estimators with the names of their pages."""
    for module in ("coterie", *(f"coterie.{name}" for name in public_names.MODULES)):
        for name in public_names.names(module):
            kind = getattr(importlib.import_module(module), name)
            if inspect.isclass(kind) and issubclass(kind, BaseEstimator):
                yield pytest.param(kind, f"{module}.{name}", id=name)


def instance(kind):
    required = {"estimator": LogisticRegression(), "steps": [("model", LogisticRegression())]}
    return kind(**{name: value for name, value in required.items() if name in inspect.signature(kind).parameters})


@pytest.mark.parametrize(("kind", "page"), list(documented_estimators()))
def test_every_public_estimator_links_to_its_page(kind, page, monkeypatch):
    model = instance(kind)
    assert model._get_doc_link() == ""
    monkeypatch.setattr(_sklearn, "DOCUMENTATION_URL", SITE)
    assert model._get_doc_link() == f"{SITE}/reference/generated/{page}.html"


def test_all_estimators_are_found():
    assert {"GroupDiscoveryClassifierCV", "CorrelationGroups", "MRMRSelector", "SVMCriterion"} <= {
        case.id for case in documented_estimators()
    }


def test_the_representation_has_the_link_only_if_there_is_a_site(monkeypatch):
    model = GroupDiscoveryClassifier(3)
    assert _sklearn.DOCUMENTATION_URL == ""
    assert "href=" not in estimator_html_repr(model)
    assert "coterie" not in "".join(part for part in estimator_html_repr(make_pipeline(model)).split('href="')[1:])
    monkeypatch.setattr(_sklearn, "DOCUMENTATION_URL", SITE)
    assert f'href="{SITE}/reference/generated/coterie.GroupDiscoveryClassifier.html"' in estimator_html_repr(model)


def test_classes_without_a_page_have_no_link(monkeypatch):
    class Own(GroupDiscoveryClassifier):
        pass

    monkeypatch.setattr(_sklearn, "DOCUMENTATION_URL", SITE)
    assert Own()._get_doc_link() == ""
    assert FilterSelector()._get_doc_link() == ""
    assert coterie.probing.RidgeCriterion()._get_doc_link().endswith("/coterie.RidgeCriterion.html")
