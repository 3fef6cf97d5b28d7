"""Parts of a store, which are mapped or fetched, checked and released separately."""

import numpy as np
import pytest
from scipy import sparse

from coterie import GroupDiscoveryClassifier
from coterie._numba import read_only
from coterie.data import DataFileError, FeatureView, open_features, open_store, write_store
from coterie.data.store import reading
from tests.data.conformance import SourceConformance, example
from tests.s3 import s3_bucket


class TestPart(SourceConformance):
    """The middle part of a larger store passes the conformance tests."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path

    def make(self, X):
        padded = np.hstack([X[:, :3], X, X[:, :5]]).astype(float)
        return _Shifted(open_store(write_store(self.folder / "x.store", sparse.csc_array(padded))).part(3, 3 + X.shape[1]))


def _Shifted(source):
    """The conformance tests count features from 0."""
    source.first_feature = 0
    return source


class TestReleasedPart(TestPart):
    """With pages released after every piece."""

    @pytest.fixture(autouse=True)
    def _often(self, monkeypatch):
        monkeypatch.setattr(reading, "_RELEASE_BYTES", 256)

    def make(self, X):
        store = open_store(write_store(self.folder / "x.store", X.astype(np.int8)))
        source = store.part(0, X.shape[1], release=True)
        assert source.pages.n_pieces() > 3
        return source


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_a_part_is_its_columns(kind, tmp_path):
    X = example(np.random.default_rng(0)).astype(np.int16)
    store = open_store(write_store(tmp_path / "x.store", sparse.csc_array(X) if kind == "sparse" else X))
    for first, last in ((0, 10), (9, 67), (30, 30), (66, 67)):
        part = store.part(first, last)
        assert part.shape == (41, last - first)
        assert part.first_feature == first
        if last > first:
            np.testing.assert_array_equal(
                np.asarray(FeatureView.of(part).moments.mean), store.source.moments().mean[first:last]
            )
            block = part.block(0, last - first)
            np.testing.assert_array_equal(block.toarray() if kind == "sparse" else block, X[:, first:last])
    with pytest.raises(ValueError, match="Features 60 to 68 are out of range for a store of 67"):
        store.part(60, 68)


def test_only_the_part_is_checked(tmp_path):
    """Damage outside the part is not checked; damage inside is reported with the feature's index in the whole store."""
    X = sparse.csc_array(example(np.random.default_rng(0)).astype(float))
    path = write_store(tmp_path / "x.store", X)
    file = path / "indices.npy"
    raw = bytearray(file.read_bytes())
    victim = int(np.flatnonzero(np.diff(X.indptr) > 2)[5])
    raw[128 + 4 * X.indptr[victim] : 128 + 4 * X.indptr[victim] + 4] = (10**6).to_bytes(4, "little")
    file.write_bytes(bytes(raw))
    store = open_store(path)
    assert store.part(victim + 1, 67).shape == (41, 66 - victim)
    with pytest.raises(DataFileError, match=f"the rows of feature {victim} are out of order or range"):
        store.part(victim - 2, 67)


def test_a_bad_value_is_named_in_the_whole(tmp_path):
    X = np.random.default_rng(0).standard_normal((20, 30))
    path = write_store(tmp_path / "x.store", X)
    raw = bytearray((path / "values.npy").read_bytes())
    raw[128 + 8 * 20 * 25 : 128 + 8 * 20 * 25 + 8] = np.array(np.nan).tobytes()
    (path / "values.npy").write_bytes(bytes(raw))
    with pytest.raises(DataFileError, match="feature 25 has a NaN"):
        open_store(path).part(20, 30).products(np.ones((20, 1)))


def test_unaligned_arrays_are_summed_in_the_same_order():
    column = np.random.default_rng(0).standard_normal(1001)
    raw = np.empty(8 * 1001 + 1, dtype=np.uint8)
    raw[1:] = column.view(np.uint8)
    unaligned = raw[1:].view(np.float64)
    assert not unaligned.flags.aligned
    assert read_only(unaligned).flags.aligned
    np.testing.assert_array_equal(read_only(unaligned), column)


@pytest.fixture(scope="module")
def bucket():
    with s3_bucket() as system:
        yield system


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_an_address(bucket, tmp_path):
    rng = np.random.default_rng(0)
    X = sparse.csc_array(example(rng).astype(float))
    y = rng.integers(0, 2, 41)
    path = write_store(tmp_path / "x.store", X, y=y, feature_names=[f"f{j}" for j in range(67)])
    bucket.put(str(path), "bucket/x.store", recursive=True)
    store = open_store("s3://bucket/x.store")
    np.testing.assert_array_equal(store.part(10, 20).block(0, 10).toarray(), X[:, 10:20].toarray())
    here, there = open_store(path), open_features("s3://bucket/x.store")
    models = [GroupDiscoveryClassifier(3).fit(here.source, here.y), GroupDiscoveryClassifier(3).fit("s3://bucket/x.store")]
    assert models[0].groups_ == models[1].groups_
    np.testing.assert_array_equal(models[0].scores_, models[1].scores_)
    assert there.feature_names[5] == "f5"
    with pytest.raises(FileNotFoundError, match="Folder not found"):
        open_store("s3://bucket/nothing.store")
    with pytest.raises(DataFileError, match="fsspec cannot open this URL"):
        open_store("nonsense://bucket/x.store")
