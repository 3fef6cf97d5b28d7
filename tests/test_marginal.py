"""Association of single features, compared with statsmodels and, if installed, with PLINK."""

import shutil
import subprocess

import numpy as np
import pytest

from coterie import FeatureGroups, GroupDiscoveryRegressor, association
from coterie.data import annotated, as_source, open_features

HAS_PLINK = shutil.which("plink1.9") is not None


@pytest.fixture
def cohort(rng):
    X = rng.integers(0, 3, (150, 12)).astype(np.int8)
    X[:, 5] = 1
    covariates = rng.standard_normal((150, 2)) * [1.0, 100.0] + [0.0, 1e4]
    y = 0.5 * X[:, 3] + covariates[:, 0] + rng.standard_normal(150)
    return X, y, covariates


def test_against_statsmodels(cohort):
    sm = pytest.importorskip("statsmodels.api")
    X, y, covariates = cohort
    cases = np.where(y > np.median(y), "case", "a control")
    for beside in (None, covariates):
        linear, logistic = association(X, y, covariates=beside), association(X, cases, covariates=beside)
        assert (linear.model, logistic.model) == ("linear", "logistic")
        for j in range(12):
            if j == 5:  # constant
                assert np.isnan([linear.p_value[j], logistic.p_value[j]]).all()
                continue
            D = [np.ones(150), X[:, j]] + ([] if beside is None else [covariates[:, 0], covariates[:, 1] / 100 - 100])
            D = np.column_stack(D)
            for found, fit in (
                (linear, sm.OLS(y, D).fit()),
                (logistic, sm.Logit((cases == "case").astype(float), D).fit(disp=0, tol=1e-12)),
            ):
                ours = [getattr(found, name)[j] for name in ("effect", "standard_error", "statistic", "p_value")]
                np.testing.assert_allclose(ours, [fit.params[1], fit.bse[1], fit.tvalues[1], fit.pvalues[1]], rtol=1e-7)


def test_features_without_an_estimate(rng):
    """A feature that separates the classes, or that is explained by a covariate, has no estimate."""
    y = np.repeat([0, 1], 30)
    X = np.column_stack([y, rng.integers(0, 3, 60)])
    assert np.isnan(association(X, y).p_value).tolist() == [True, False]
    assert np.isnan(association(X, rng.standard_normal(60), covariates=X[:, 1] * 2.0).p_value).tolist() == [False, True]


def test_features_by_groups_names_and_attach(cohort):
    X, y, covariates = cohort
    source = annotated(as_source(X.astype(float), [f"rs{j}" for j in range(12)]), {"position": np.arange(12) * 10})
    model = GroupDiscoveryRegressor(3).fit(source, y, covariates=covariates)
    whole, part = association(source, y, covariates=covariates), association(source, y, model, covariates=covariates)
    assert part.feature.tolist() == model.groups_.members.tolist()
    np.testing.assert_allclose(part.p_value, whole.p_value[part.feature])
    assert part.names == tuple(f"rs{j}" for j in part.feature)
    assert part.annotations == {"position": (part.feature * 10).tolist()}
    assert association(source, y, ["rs3"]).feature.tolist() == [3]
    groups = part.attach(model.groups_)
    frame = groups.to_frame()
    assert list(frame.columns[-5:]) == ["position", "marginal_effect", "standard_error", "statistic", "p_value"]
    np.testing.assert_allclose(frame["p_value"], whole.p_value[frame["feature"]])
    assert (frame["position"] == 10 * frame["feature"]).all()
    with pytest.raises(ValueError, match=r"lacks feature \d+ of the groups"):
        association(source, y, [5]).attach(model.groups_)
    assert list(whole.to_frame().columns)[:3] == ["feature", "name", "position"]
    assert "adjusted for covariate_0, covariate_1" in repr(whole)
    assert len(association(source, y, FeatureGroups())) == 0


def test_sparse_and_dense_agree(cohort):
    from scipy import sparse

    X, y, _ = cohort
    np.testing.assert_allclose(association(sparse.csc_array(X), y).p_value, association(X, y).p_value)


def test_bad_input(cohort):
    X, y, _ = cohort
    for arguments, message in [
        ({"y": None}, "association requires y"),
        ({"y": np.ones(150)}, "y is constant"),
        ({"y": np.arange(150) % 3, "model": "logistic"}, "requires two classes, but y has 3"),
        (
            {"y": np.array(list("abc"))[np.arange(150) % 3]},
            "y has 3 classes, but an association requires two classes or numbers",
        ),
        ({"y": y, "model": "probit"}, "model='probit' must be"),
        ({"y": y, "features": [12]}, "features has index 12"),
        ({"y": y, "covariates": np.eye(150)}, "150 samples are too few"),
    ]:
        with pytest.raises(ValueError, match=message):
            association(X, **arguments)


@pytest.mark.skipif(not HAS_PLINK, reason="plink1.9 is not installed")
@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_against_plink(cohort, tmp_path, kind):
    """Association with covariates, and the columns of clumps."""
    bed_reader = pytest.importorskip("bed_reader")
    X, y, covariates = cohort
    X[:, 4] = np.where(np.arange(150) % 9 == 0, X[:, 4], X[:, 3])  # in linkage with the causal one
    y = y if kind == "linear" else np.where(y > np.median(y), 2, 1)
    people, names = [f"i{k}" for k in range(150)], [f"rs{j}" for j in range(12)]
    bed_reader.to_bed(
        tmp_path / "x.bed", X,
        properties={"fid": people, "iid": people, "sid": names, "chromosome": ["1"] * 12, "bp_position": range(1, 13),
                    "allele_1": ["A"] * 12, "allele_2": ["C"] * 12},
    )  # fmt: skip
    (tmp_path / "p.txt").write_text("".join(f"{p} {p} {v}\n" for p, v in zip(people, y.tolist(), strict=True)))
    rows = [f"{p} {p} {a} {b}\n" for p, (a, b) in zip(people, covariates.tolist(), strict=True)]
    (tmp_path / "c.txt").write_text("".join(reversed(rows)))

    def plink(*options):
        command = ["plink1.9", "--bfile", "x", "--allow-no-sex", "--keep-allele-order", "--out", "o", *options]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)

    coding = [] if kind == "linear" else ["beta"]
    plink("--pheno", "p.txt", "--covar", "c.txt", f"--{kind}", *coding, "hide-covar")
    lines = [line.split() for line in (tmp_path / f"o.assoc.{kind}").read_text().splitlines()]
    data = open_features(tmp_path / "x.bed", phenotype=tmp_path / "p.txt", covariates=tmp_path / "c.txt")
    assert data.covariates.names == ("COV1", "COV2")
    ours = association(data)
    for line in lines[1:]:
        row = dict(zip(lines[0], line, strict=True))
        if row["P"] != "NA":
            j = int(row["SNP"][2:])
            np.testing.assert_allclose([ours.effect[j], ours.p_value[j]], [float(row["BETA"]), float(row["P"])], rtol=2e-3)
    plink("--clump", f"o.assoc.{kind}", "--clump-p1", "0.05", "--clump-p2", "1", "--clump-r2", "0.5")
    theirs = [line.split() for line in (tmp_path / "o.clumped").read_text().splitlines() if line.strip()]
    row = next(dict(zip(theirs[0], line, strict=True)) for line in theirs[1:] if line[2] in ("rs3", "rs4"))
    source = annotated(data.source, {})
    groups = GroupDiscoveryRegressor(2, fixed_features=[row["SNP"]]).fit(source, np.asarray(data.y, float)).groups_
    (clump,) = [one for one in ours.attach(groups).clumps(r2=0.5) if one["SNP"] == row["SNP"]]
    assert list(clump) == theirs[0]
    assert {name: str(clump[name]) for name in clump if name != "P"} == {name: v for name, v in row.items() if name != "P"}
    assert clump["P"] == pytest.approx(float(row["P"]), rel=2e-3)


def test_offset(cohort):
    """The offset is subtracted from numbers, and a covariate of classes."""
    X, y, covariates = cohort
    cases, offset = y > np.median(y), covariates[:, 0]
    for found, expected in [
        (association(X, y, offset=offset), association(X, y - offset)),
        (
            association(X, y, covariates=covariates[:, 1], offset=offset),
            association(X, y - offset, covariates=covariates[:, 1]),
        ),
        (association(X, cases, offset=offset), association(X, cases, covariates=offset)),
        (association(X, cases, covariates=covariates[:, 1], offset=offset), association(X, cases, covariates=covariates)),
    ]:
        np.testing.assert_allclose(found.p_value, expected.p_value, rtol=1e-8)
        np.testing.assert_allclose(found.effect, expected.effect, rtol=1e-8)
    with pytest.raises(ValueError, match="offset has 3 entries"):
        association(X, y, offset=offset[:3])
