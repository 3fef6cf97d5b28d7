"""Several matrices as one source: the same numbers as one matrix, samples in the same order, and clear errors."""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from coterie.data import Dataset, DenseSource, ImputedSource, PackedStrings, SparseSource, annotated, as_source
from coterie.data import blocks as module
from coterie.data.blocks import ConcatenatedSource, blocks_of, concatenated, join_blocks, some_features
from coterie.data.covariates import Covariates
from tests import naive
from tests.data.conformance import SourceConformance


class TestMixedParts(SourceConformance):
    """A sparse part between two dense ones of different types, one of them of a single feature."""

    def make(self, X):
        parts = X[:, :30].astype(np.float32), sparse.csc_array(X[:, 30:66].astype(np.float64)), X[:, 66:].astype(np.int8)
        return ConcatenatedSource([as_source(part) for part in parts])


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    return rng.standard_normal((12, 5)), rng.poisson(0.2, (12, 40)) * (np.arange(12)[:, None] < 6)


def test_small_parts_become_one_matrix_of_the_smaller_layout(parts):
    dense, counts = parts
    for given, kind in (
        ([dense, counts.astype(float)], DenseSource),
        ([dense[:, :1], sparse.csc_array(counts)], SparseSource),
        ([dense, sparse.csc_array(counts[:, :2] + 1)], DenseSource),
        ([sparse.csc_array(dense), sparse.csc_array(counts)], SparseSource),
    ):
        source = concatenated([as_source(part) for part in given])
        assert isinstance(source, kind)
        whole = np.hstack([part if isinstance(part, np.ndarray) else part.toarray() for part in given])
        np.testing.assert_array_equal(naive.dense(source.block(0, source.shape[1])), whole)


def test_large_parts_stay_apart(parts, monkeypatch):
    monkeypatch.setattr(module, "_MAX_COPIED_BYTES", 100)
    source = concatenated([as_source(parts[0]), as_source(sparse.csc_array(parts[1]))], [f"f{j}" for j in range(45)])
    assert isinstance(source, ConcatenatedSource)
    assert source.feature_names[44] == "f44"
    bad = parts[1].astype(float)
    bad[3, 2] = np.nan
    source = concatenated([as_source(parts[0]), as_source(bad)], [f"f{j}" for j in range(45)])
    with pytest.raises(ValueError, match=r"sample 3 of feature 7 \('f7'\)"):
        source.moments()


def test_imputed_parts_are_imputed_per_fold(parts):
    gaps = parts[0].copy()
    gaps[0, 1] = np.nan
    source = concatenated([as_source(parts[1].astype(float)), ImputedSource(gaps, "mean")])
    assert isinstance(source, ImputedSource)
    half = np.arange(12) < 6
    assert source.refilled(half).array[0, 41] == pytest.approx(np.nanmean(gaps[half, 1]))
    some = some_features(source, np.array([41, 3]))
    assert some.refilled(half).array[0, 0] == pytest.approx(np.nanmean(gaps[half, 1]))
    with pytest.raises(ValueError, match="imputed by mean and median"):
        concatenated([ImputedSource(gaps, "mean"), ImputedSource(gaps, "median")])
    with pytest.raises(ValueError, match="Imputed blocks and sparse blocks"):
        concatenated([ImputedSource(gaps, "mean"), as_source(sparse.csc_array(parts[1]))])


def dataset(values, names=None, features=None, **more):
    return Dataset(as_source(np.asarray(values, dtype=float), features), sample_names=names, **more)


def test_samples_are_matched_by_name():
    first = dataset([[1], [2], [3]], ["a", "b", "c"], ["x"])
    second = dataset(
        [[30], [10], [20]], ["c", "a", "b"], ["x"], y=np.array(["w", "u", "v"]), sample_groups=np.array(["3", "1", "2"]),
        covariates=Covariates(np.array([[3.0], [1.0], [2.0]]), ("age",)), other_columns={"k": np.array([3, 1, 2])},
    )  # fmt: skip
    third = dataset([[7], [8], [9]])
    found = join_blocks({"one": first, "two": second, "three": third})
    np.testing.assert_array_equal(found.source.array, [[1, 10, 7], [2, 20, 8], [3, 30, 9]])
    assert list(found.feature_names) == ["one:x", "two:x", "three:0"]
    assert list(found.sample_names) == ["a", "b", "c"]
    assert found.y.tolist() == ["u", "v", "w"]
    assert found.sample_groups.tolist() == ["1", "2", "3"]
    assert found.covariates.values.tolist() == [[1.0], [2.0], [3.0]]
    assert found.other_columns["k"].tolist() == [1, 2, 3]
    assert found.notes["blocks"] == "one (1 features), two (1 features), three (1 features)"
    assert {name: features.tolist() for name, features in blocks_of(found.source).items()} == {
        "one": [0], "two": [1], "three": [2]
    }  # fmt: skip


def test_common_samples():
    first, second = dataset([[1], [2], [3]], ["a", "b", "c"]), dataset([[30], [20], [40]], ["c", "b", "d"])
    found = join_blocks({"one": first, "two": second}, common=True)
    np.testing.assert_array_equal(found.source.array, [[2, 20], [3, 30]])
    assert found.notes["samples_not_in_all_blocks_dropped"] == 1
    with pytest.raises(ValueError, match="No sample name occurs in all blocks"):
        join_blocks({"one": first, "two": dataset([[1]], ["z"])}, common=True)
    with pytest.raises(ValueError, match="Block 'two' has no sample names"):
        join_blocks({"one": first, "two": dataset([[1]])}, common=True)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (dataset([[1], [2], [3]], ["a", "b", "d"]), "Block 'two' lacks 1 of the samples of block 'one': 'c'"),
        (dataset([[1]] * 4, ["a", "b", "c", "d"]), "Block 'one' lacks 1 of the samples of block 'two': 'd'"),
        (dataset([[1], [2], [3]], ["a", "b", "a"]), "Block 'two' has the sample name 'a' twice"),
        (dataset([[1], [2]]), "Block 'two' has 2 samples, but block 'one' has 3"),
        (dataset(np.empty((3, 0))), "Block 'two' has no features"),
        (dataset([[1, 2]] * 3, None, PackedStrings.pack(["x", "x"])), "Block 'two': columns 0 and 1 have the same name 'x'"),
    ],
)
def test_blocks_that_do_not_match(second, message):
    with pytest.raises(ValueError, match=message):
        join_blocks({"one": dataset([[1], [2], [3]], ["a", "b", "c"]), "two": second})


def test_block_names():
    for name in ("", "a:b", 3):
        with pytest.raises(ValueError, match="must be a string without a colon"):
            join_blocks({name: dataset([[1], [2]])})


def test_annotations_of_some_blocks_only():
    snps = annotated(as_source(np.eye(2)), {"chromosome": PackedStrings.pack(["1", "X"])})
    found = join_blocks({"snp": Dataset(snps), "rna": dataset(np.eye(2))})
    column = found.source.annotations["chromosome"]
    assert [column[j] for j in range(4)] == ["1", "X", None, None]
    assert "chromosome" not in found.feature_info  # so that the report has no genome with features without a place


def test_mudata(tmp_path):
    mudata = pytest.importorskip("mudata")
    anndata = pytest.importorskip("anndata")
    pd = pytest.importorskip("pandas")
    from coterie import GroupDiscoveryClassifier
    from coterie.data import convert, open_features

    rng = np.random.default_rng(0)
    names = np.array([f"c{i}" for i in range(20)])
    order = rng.permutation(20)
    frames = [pd.DataFrame(index=names), pd.DataFrame(index=names[order])]
    values = rng.standard_normal((20, 4)), sparse.csr_matrix(rng.poisson(0.5, (20, 6)).astype(float))
    variables = [pd.DataFrame(index=[f"{kind}{j}" for j in range(n)]) for kind, n in (("g", 4), ("p", 6))]
    with mudata.set_options(pull_on_update=False):
        mdata = mudata.MuData(
            {
                kind: anndata.AnnData(X, obs=obs, var=var)
                for kind, X, obs, var in zip(("rna", "adt"), values, frames, variables, strict=True)
            }
        )
        mdata.obs["kind"] = np.where(mdata["rna"].X[:, 1] > 0, "u", "v")
        mdata.obs["donor"] = [f"d{i % 4}" for i in range(20)]
        mdata.write(tmp_path / "x.h5mu")
    whole = np.empty((20, 10))
    whole[:, :4], whole[order, 4:] = values[0], values[1].toarray()
    store = convert(tmp_path / "x.h5mu", tmp_path / "x.store", label="kind", sample_groups="donor")
    for given in (mdata, tmp_path / "x.h5mu", store):
        options = {} if given is store else {"label": "kind", "sample_groups": "donor"}
        found = open_features(given, **options)
        np.testing.assert_array_equal(naive.dense(found.source.block(0, 10)), whole)
        assert list(found.feature_names)[3:5] == ["rna:g3", "adt:p0"]
        assert found.y.tolist() == mdata.obs["kind"].tolist()
        assert found.sample_groups.tolist() == mdata.obs["donor"].tolist()
        assert list(blocks_of(found.source)) == ["rna", "adt"]
    model = GroupDiscoveryClassifier(1).fit(mdata, "kind")
    assert model.groups_[0].names[0] == "rna:g1"
    assert (model.predict(mdata) == model.predict(tmp_path / "x.h5mu")).all()
    mdata.obs.loc["c3", "kind"] = None
    with pytest.raises(ValueError, match=r"1 of 20 samples have no label in obs\['kind'\]\. The first is 'c3'"):
        open_features(mdata, label="kind")
    with pytest.raises(ValueError, match="does not apply to a MuData object"):
        open_features(mdata, format="csv")
    (tmp_path / "damaged.h5mu").write_bytes(Path(tmp_path / "x.h5mu").read_bytes()[:3000])
    with pytest.raises(ValueError, match="damaged or not an"):
        open_features(tmp_path / "damaged.h5mu")
