"""Mutate small files of every kind: any content must give a result or one clear error.

``python tests/fuzz/mutate.py --minutes 60 --seed 1``. Files are changed as bytes, or forged with valid checksums: unpacked
content is changed and packed again, and arrays and JSON of stores, models and checkpoints get correct checksums. A model that
loads must predict and transform, or raise one ``ValueError``, and must not contain a function. Cases run in child processes,
some hundreds each, so that crashes are detected. A child is limited to a few hundred megabytes, and to some seconds per case.
A case is identified by its seed; ``--case`` runs it alone. Findings become tests.
"""

from __future__ import annotations

import argparse
import ast
import bz2
import copy
import gzip
import hashlib
import io
import json
import lzma
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

CASES = 3000
CHILD_SECONDS = 60
SECONDS = 30
MEGABYTES = 700
# Weights of the kinds. An .h5ad file is checked in its own process, which takes half a second.
KINDS = {
    "libsvm": 10, "npz": 10, "matrix-market": 5, "csv": 10, "tsv": 2, "parquet": 8, "plink": 6, "store": 15, "model": 30,
    "checkpoint": 10, "comparison": 5, "h5ad": 1,
}  # fmt: skip
TOKENS = [
    b"0", b"1", b"-1", b"9999999999", b"99999999999999999999", b"1e999", b"nan", b"inf", b":", b" ", b"\n", b"\r\n", b"#",
    b"qid:1", b",", b"\t", b'"', b"\0", b"%", b"\xff", b"2147483648", b"4294967296", b"-0", b".", b"e", b"1:1",
    b" 5:", b"NA", b"label",
]  # fmt: skip


# Replacements of JSON values: limits, other types, names with a meaning.
PALETTE: list[Any] = [
    None, True, -1, 0, 1, 624, 10**7, 2**31, 10**12, 2**63, 2**64, 10**30, 1e308, "", "predict", "__class__", "float64", "C",
    "os.system", "sklearn.svm.SVC", "fisher_score", "load", "GroupDiscoveryClassifier", "FeatureGroup", "../../x", [], {}, [0],
    [10**9], [-1], [0, 10**12], {"$": "function", "type": "fisher_score"}, {"$": "objects", "shape": [10**9], "items": []},
    {"$": "float", "value": "nan"}, {"$": "array", "pool": "float64", "start": 0, "shape": [3], "order": "C"},
    {"$": "array", "pool": "int64", "start": 0, "shape": [2], "order": "F"}, {"$": "path", "value": "/"},
    {"$": "tuple", "items": [1]}, {"$": "estimator", "type": "MRMRSelector", "parameters": {}, "attributes": {}},
    {"$": "random_state", "state": {"$": "tuple", "items": ["MT19937", [], 10**7, 0, 0.0]}},
]  # fmt: skip
KEYS = ["predict", "transform", "__class__", "__dict__", "n_features_in_", "groups_", "coef_", "shape", "_sums", "x"]


def make_seeds(folder: Path, kinds: Any = tuple(KINDS)) -> dict[str, list[Path]]:
    """Write small valid files of every format."""
    import numpy as np
    import scipy.io
    from scipy import sparse

    from coterie.data import write_store

    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (12, 9)) * (rng.random((12, 9)) < 0.5)
    y = np.arange(12) % 2
    S = sparse.csr_array(X.astype(np.float32))
    seeds: dict[str, list[Path]] = {}

    def keep(kind: str, name: str, content: bytes) -> None:
        (folder / name).write_bytes(content)
        seeds.setdefault(kind, []).append(folder / name)

    rows = [
        f"{2 * label - 1} " + " ".join(f"{j + 1}:{v / 8}" for j, v in enumerate(row) if v)
        for row, label in zip(X, y, strict=True)
    ]
    text = "\n".join(rows).encode()
    keep("libsvm", "a.svm", b"# comment\n" + text + b" # end")
    keep("libsvm", "b.svm", b"1 qid:1 0:1.25e-3 7:123456789.123456789\r\n-1 2:5e-324 3:.5\r\n0.5 1:1\r\n")
    for name, packer in (("gz", gzip), ("bz2", bz2), ("xz", lzma)):
        keep("libsvm", f"c.svm.{name}", packer.compress(text))
    for number, save in enumerate((np.savez, np.savez_compressed)):
        for parts in ({"X": X, "y": y}, {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape, "y": y}):
            buffer = io.BytesIO()
            save(buffer, **parts)
            keep("npz", f"a{number}{len(parts)}.npz", buffer.getvalue())
    for kind in ("csc", "coo", "bsr", "dia"):
        sparse.save_npz(folder / f"{kind}.npz", S.asformat(kind))
        seeds["npz"].append(folder / f"{kind}.npz")
    for name, matrix in (("coo", sparse.coo_array(X * 0.1)), ("array", X * 0.5), ("int", sparse.coo_array(X))):
        scipy.io.mmwrite(folder / f"{name}.mtx", matrix)
        seeds.setdefault("matrix-market", []).append(folder / f"{name}.mtx")
    table = "a,b,c,y\n" + "\n".join(f"{r[0]},{r[1] / 7},{r[2]},{'uv'[k]}" for r, k in zip(X, y, strict=True))
    keep("csv", "a.csv", table.encode())
    keep("csv", "b.csv", b'"a b","c\nd",y\n1,2,"x"\n3,4,"z,z"\n')
    keep("tsv", "a.tsv", table.replace(",", "\t").encode())
    keep("csv", "c.csv.gz", gzip.compress(table.encode()))
    import pandas as pd
    from bed_reader import to_bed

    pd.DataFrame({"a": y * 0.5, "b": y, "y": ["u", "v"] * 6}).to_parquet(folder / "a.parquet")
    seeds["parquet"] = [folder / "a.parquet"]
    for name, values in (("csr", S), ("dense", X.astype(np.float32)), ("csc", S.tocsc())) if "h5ad" in kinds else ():
        import anndata

        matrix = values if name == "dense" else getattr(sparse, f"{name}_matrix")(values)
        anndata.AnnData(matrix, obs=pd.DataFrame({"kind": ["u", "v"] * 6}, index=[str(i) for i in range(12)])).write_h5ad(
            folder / f"{name}.h5ad"
        )
        seeds.setdefault("h5ad", []).append(folder / f"{name}.h5ad")
    to_bed(folder / "g.bed", np.where(X > 2, -127, X).astype(np.int8), properties={"pheno": [str(1 + k) for k in y]})
    seeds["plink"] = [folder / "g.bed", folder / "g.bim", folder / "g.fam"]
    write_store(folder / "sparse.store", S, y, feature_names=[f"f{j}" for j in range(9)], sample_names=["s"] * 12)
    write_store(folder / "dense.store", X, ["u", "v"] * 6, feature_info={"position": range(9), "gene": ["g"] * 9})
    seeds["store"] = sorted(file for name in ("sparse", "dense") for file in (folder / f"{name}.store").iterdir())
    keep_models(folder)
    seeds["model"] = sorted(folder.glob("*.coterie"))
    checkpoint(folder / "probes.npz").save(np.linspace(0, 1, 40), (3, 2**64 - 1))
    seeds["checkpoint"] = [folder / "probes.npz"]
    keep_comparison(folder / "comparison")
    seeds["comparison"] = sorted((folder / "comparison").iterdir())
    return {kind: files for kind, files in seeds.items() if kind in kinds}


def keep_models(folder: Path) -> None:
    """Save models with names, a random state, a function and the setting of ``set_output``, and one of every kind."""
    import numpy as np
    import pandas as pd

    import coterie
    from coterie.filters import fisher_score
    from tests.persistence import models

    for name, model in models.models():
        coterie.save(model, folder / f"{name}.coterie")
    X = np.random.default_rng(1).standard_normal((30, 6))
    frame, y = pd.DataFrame(X, columns=list("abcdef")), X[:, 0] > 0
    state = np.random.RandomState(0)
    coterie.save(coterie.GroupDiscoveryClassifier(3, cv=2, random_state=state).fit(frame, y), folder / "named.coterie")
    selector = coterie.GlobalRedundancySelector(fisher_score, 2).set_output(transform="pandas").fit(frame, y)
    coterie.save(selector, folder / "redundancy.coterie")
    sure = coterie.GroupDiscoveryClassifier(3).fit(frame, y)
    coterie.group_confidence(sure, frame, y, n_pairs=2, n_permutations=1, random_state=0).attach_to(sure)
    coterie.save(sure, folder / "confidence.coterie")


def keep_comparison(folder: Path) -> None:
    """Write the folder of a comparison with a few rows."""
    import numpy as np

    from coterie.comparison.result import Row

    folder.mkdir()
    kept = journal(folder)
    for fold in range(3):
        kept.add(Row("gdm", 5, fold, 5, 0.5 + fold / 8, 0.25, 0.125, 1.5, "ok", ""), np.arange(5) * fold)
    kept.add(Row.without_result("mrmr", 5, 0, "failed", "y has only one class"), np.empty(0, dtype=np.int64))
    kept.close()


def journal(folder: Path) -> Any:
    """Open the journal of a fixed comparison."""
    from coterie.comparison.journal import Journal
    from coterie.comparison.process import Limits

    common = {part: part for part in ("data", "folds", "judging")}
    return Journal(folder, common, {"gdm": "a", "mrmr": "b"}, Limits(60.0, 2**30))


def checkpoint(path: Path) -> Any:
    """Return the checkpoint of a fixed run."""
    from coterie.probing.checkpoint import Checkpoint

    return Checkpoint(path, {part: part for part in ("data", "labels", "folds", "criterion", "probes", "seed")})


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Return the content with a few changes of many kinds."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        place = rng.randrange(len(data) + 1)
        kind = rng.randrange(8)
        if kind == 0 and data:
            data[place % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1 and data:
            data[place % len(data)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif kind == 2:
            data[place:place] = rng.choice(TOKENS)
        elif kind == 3:
            del data[place : place + rng.choice((1, 2, 4, 16, 200))]
        elif kind == 4:
            del data[place:]
        elif kind == 5:
            data[place:place] = data[(other := rng.randrange(len(data) + 1)) : other + rng.randrange(1, 40)]
        elif kind == 6:
            size = rng.choice((1, 2, 4, 8))
            data[place : place + size] = rng.choice(
                (0, 2 ** (8 * size - 1), 2 ** (8 * size) - 1, 2 ** (8 * size - 2))
            ).to_bytes(size, "little")
        elif data:
            token = rng.choice(TOKENS)
            data[place : place + len(token)] = token
    return bytes(data)


def mutated_json(content: Any, rng: random.Random) -> Any:
    """Return JSON with a few changed values, keys or items."""
    content = copy.deepcopy(content)
    for _ in range(rng.choice((1, 1, 2, 5))):
        places: list[tuple[Any, Any]] = []
        stack = [content]
        while stack:
            node = stack.pop()
            keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
            places += [(node, key) for key in keys]
            stack += [node[key] for key in keys]
        if not places:
            return content
        node, key = rng.choice(places)
        action = rng.randrange(6)
        if action == 0:
            del node[key]
        elif action == 1:
            other, other_key = rng.choice(places)
            node[key] = copy.deepcopy(other[other_key])
        elif action == 2 and isinstance(node, dict):
            node[rng.choice(KEYS)] = node.pop(key)
        elif action == 3 and isinstance(node, list):
            node *= rng.choice((0, 2, 3))
        elif action == 4 and isinstance(node[key], (int, float)):
            node[key] = rng.choice((node[key] + 1, node[key] - 1, -node[key], 10 * node[key], node[key] + 0.5))
        else:
            node[key] = copy.deepcopy(rng.choice(PALETTE))
    return content


def repacked(name: str, content: bytes, rng: random.Random) -> bytes:
    """Return a file whose unpacked content is changed, so that the checksums of the archive are valid."""
    for ending, packer in ((".gz", gzip), (".bz2", bz2), (".xz", lzma)):
        if name.endswith(ending):
            return packer.compress(mutated(packer.decompress(content), rng))
    if name.endswith(".coterie"):
        return forged_model(content, rng)
    if name.endswith(".npz"):
        return forged_npz(content, rng)
    if name in ("settings.json", "rows.jsonl"):
        lines = [content] if name == "settings.json" else content.splitlines()
        place = rng.randrange(len(lines))
        lines[place] = json.dumps(mutated_json(json.loads(lines[place]), rng)).encode()
        return b"\n".join(lines) + b"\n"
    return mutated(content, rng)


def parts_of(content: bytes) -> dict[str, bytes]:
    """Return the parts of a zip file."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts: dict[str, bytes], rng: random.Random, comment: bytes = b"") -> bytes:
    """Return a zip file of the parts, compressed at random."""
    buffer = io.BytesIO()
    method = rng.choice((zipfile.ZIP_STORED,) * 9 + (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, part in parts.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), part, method)
        archive.comment = comment
    return buffer.getvalue()


def mutated_array(part: bytes, rng: random.Random) -> bytes:
    """Return an .npy file with changed numbers or a changed header."""
    start = 10 + int.from_bytes(part[8:10], "little")
    if rng.random() < 0.3:
        return mutated(part, rng)
    body = bytearray(part[start:])
    for _ in range(rng.choice((1, 1, 4))):
        size = rng.choice((1, 4, 8))
        place = rng.randrange(len(body) // size + 1) * size
        limits = (0, 1, 7, 2 ** (8 * size - 1), 2 ** (8 * size) - 1, 0x7FF8 << 48, 0x7FF0 << 48, 10**7)
        body[place : place + size] = (rng.choice(limits) % 2 ** (8 * size)).to_bytes(size, "little")
    return part[:start] + bytes(body[: len(part) - start])


def forged_npz(content: bytes, rng: random.Random) -> bytes:
    """Return a zip file of arrays with some changed arrays; the JSON of a checkpoint is changed as JSON."""
    parts = parts_of(content)
    name = rng.choice(sorted(parts))
    if name == "header.npy" and rng.random() < 0.7:
        import numpy as np

        header = mutated_json(json.loads(np.load(io.BytesIO(parts[name])).tobytes()), rng)
        buffer = io.BytesIO()
        np.save(buffer, np.frombuffer(json.dumps(header).encode(), dtype=np.uint8))
        parts[name] = buffer.getvalue()
    else:
        parts[name] = mutated_array(parts[name], rng)
    return zipped(parts, rng)


def forged_model(content: bytes, rng: random.Random) -> bytes:
    """Return a model with changed JSON or numbers, and valid checksums."""
    parts = parts_of(content)
    text = json.loads(parts.pop("model.json").decode("utf-8", "surrogatepass"))
    if rng.random() < 0.3:
        name = rng.choice(sorted(parts))
        parts[name] = mutated_array(parts[name], rng)
    if rng.random() < 0.8:
        text["model"] = mutated_json(text["model"], rng)
    text["sha256"] = {name.removesuffix(".npy"): hashlib.sha256(part).hexdigest() for name, part in parts.items()}
    written = json.dumps(text).encode("utf-8", "surrogatepass")
    return zipped({**parts, "model.json": written}, rng, hashlib.sha256(written).hexdigest().encode())


def forge_store(folder: Path, file: Path, rng: random.Random) -> None:
    """Change a file of a store and update all checksums."""
    path = folder / "header.json"
    header = json.loads(path.read_text())
    if file.name == "header.json":
        header = mutated_json(header, rng)
    else:
        content = mutated_array(file.read_bytes(), rng)
        (folder / file.name).write_bytes(content)
        for entry in header["arrays"].values():
            if entry["file"] == file.name:
                entry["crc32"] = f"{zlib.crc32(content[128:]):08x}"
    header.pop("header_crc32", None)
    plain = json.dumps(header, sort_keys=True, separators=(",", ":"))
    path.write_text(json.dumps({**header, "header_crc32": f"{zlib.crc32(plain.encode()):08x}"}, indent=2) + "\n")


def forge_h5ad(path: Path, rng: random.Random) -> None:
    """Change an .h5ad file through HDF5: inconsistent attributes, numbers and shapes."""
    import h5py
    import numpy as np

    with h5py.File(path, "a") as file:
        names: list[str] = []
        file.visit(names.append)
        for _ in range(rng.choice((1, 2))):
            item = file[rng.choice(names)]
            if isinstance(item, h5py.Dataset) and rng.random() < 0.6:
                name, attributes = item.name, dict(item.attrs)
                values = item[()] if item.size < 10**6 else None  # an earlier change may have made it huge
                shape = rng.choice([(0,), (10**9,), (2, 3), (12,), ()])
                del file[name]
                if rng.random() < 0.5 and isinstance(values, np.ndarray) and values.dtype.kind in "iuf" and values.size:
                    values = values.copy()
                    values.ravel()[rng.randrange(values.size)] = rng.choice([-1, 100, 127])
                    made = file.create_dataset(name, data=values)
                else:
                    chunks = tuple(max(1, min(n, 100)) for n in shape) or None
                    made = file.create_dataset(name, shape=shape, dtype=item.dtype, chunks=chunks if 0 not in shape else None)
                for key, value in attributes.items():
                    made.attrs[key] = value
            elif item.attrs:
                key = rng.choice(sorted(item.attrs))
                item.attrs[key] = rng.choice(
                    ["", "csr_matrix", "array", "dataframe", 5, np.array([3, 10**9]), np.array([-1, 2])]
                )


def run_case(seed: int, seeds: dict[str, list[Path]], work: Path) -> tuple[str, str]:
    """Run one case; return its kind and outcome, or raise an error if the behaviour is wrong."""
    rng = random.Random(seed)
    kind = rng.choices(sorted(seeds), [KINDS[kind] for kind in sorted(seeds)])[0]
    seed_file = rng.choice(seeds[kind])
    forged = rng.random() < 0.5
    original = seed_file.read_bytes()
    content = repacked(seed_file.name, original, rng) if forged else mutated(original, rng)
    if kind in ("store", "plink", "comparison"):
        folder = work / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(seed_file.parent, folder) if kind != "plink" else folder.mkdir()
        if kind == "plink":
            for file in seeds["plink"]:
                shutil.copy(file, folder)
        if kind == "store" and forged:
            forge_store(folder, seed_file, rng)
        else:
            (folder / seed_file.name).write_bytes(content)
        target = folder / "g.bed" if kind == "plink" else folder
    else:
        target = folder = work / seed_file.name
        target.write_bytes(original if kind == "h5ad" and forged else content)
        if kind == "h5ad" and forged:
            forge_h5ad(target, rng)
    unchanged = content == original and not forged
    try:
        if kind == "model":
            outcome = try_model(target, rng)
        elif kind == "checkpoint":
            checkpoint(target).load()
            outcome = "loaded"
        elif kind == "comparison":
            journal(target).close()
            outcome = "loaded"
        else:
            outcome = try_data(target, kind, rng, check=kind == "store" and not unchanged and not forged)
    except (ValueError, OSError) as error:
        message = str(error)
        if str(folder) not in message or "\n" in message:
            raise AssertionError(f"The message is not one line with the file's name: {message!r}") from error
        if os.environ.get("FUZZ_SHOW"):
            print(kind, message, flush=True)
        outcome = "error"
    return f"{kind}{' forged' if forged else ''}", outcome


def try_data(target: Path, kind: str, rng: random.Random, *, check: bool) -> str:
    """Open a data file and use it."""
    import numpy as np

    from coterie.data import check_store, open_features

    options = {"label": "kind"} if kind == "h5ad" and rng.random() < 0.5 else {}
    dataset = open_features(target, format=kind, **options)
    if dataset.source.products(np.ones((dataset.shape[0], 1))).shape != (dataset.shape[1], 1):
        raise AssertionError("Products have the wrong shape.")
    for names in (dataset.feature_names, dataset.sample_names):
        list(names or ())
    if kind == "libsvm":
        compare_with_scikit_learn(target, dataset)
    if check:
        try:
            check_store(target)
        except (ValueError, OSError):
            return "damage found"
        raise AssertionError("A changed store passes the check.")
    return "data"


def try_model(target: Path, rng: random.Random) -> str:
    """Load a model and use it: there must be a result or one clear error, and no function from the file."""
    import numpy as np

    import coterie

    model = coterie.load(target)
    for name, value in vars(model).items():
        if callable(value) and name not in model.get_params(deep=False):
            raise AssertionError(f"The attribute {name} is callable.")
    n_features = getattr(model, "n_features_in_", 6)
    X = np.random.default_rng(0).standard_normal((4, n_features if n_features < 1000 else 6))
    outcome = "loaded"
    for name in ("predict", "transform", "decision_function", "get_feature_names_out", "coef_", "groups_", "confidence_"):
        try:
            value = getattr(model, name, None)
            if name == "confidence_" and value is not None:
                value.to_dict(), value.rows(), value.reached_by_chance
            if callable(value):
                value() if name == "get_feature_names_out" else value(X)
            repr(value)
        except ValueError:
            outcome = "loaded, then an error"
    return outcome


def compare_with_scikit_learn(path: Path, dataset: object) -> None:
    """Check that scikit-learn reads the same values from a file that our reader accepts."""
    import numpy as np
    from sklearn.datasets import load_svmlight_file

    from coterie.data.readers.byte_stream import open_binary

    with open_binary(path) as file:
        content = file.read()
    X, y = load_svmlight_file(io.BytesIO(content))
    ours = dataset.source.block(0, dataset.shape[1])
    if X.shape != dataset.shape or (X.tocsc() != ours).nnz or not np.array_equal(y, dataset.y):
        raise AssertionError("scikit-learn reads different values.")


def child(first: int, count: int, folder: Path, kinds: list[str]) -> None:
    """Run some cases; print one line per finding, and the counts at the end."""
    warnings.simplefilter("ignore")
    (folder / "seeds").mkdir()
    seeds = make_seeds(folder / "seeds", kinds)
    for kind, files in seeds.items():  # compile and import everything before memory is limited
        for file in files:
            if kind == "model":
                try_model(file, random.Random(0))
            elif kind not in ("checkpoint", "comparison"):
                main = file.parent if kind == "store" else files[0] if kind == "plink" else file
                try_data(main, kind, random.Random(0), check=False)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEGABYTES * 2**20,) * 2)
    outcomes: Counter[tuple[str, str]] = Counter()
    end = time.monotonic() + CHILD_SECONDS
    seed = first - 1
    while seed + 1 < first + count and time.monotonic() < end:
        seed += 1
        (folder / "running").write_text(str(seed))
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # processor time, which does not depend on other processes
        try:
            outcomes[run_case(seed, seeds, folder)] += 1
        except BaseException as error:
            outcomes["FINDING", type(error).__name__] += 1
            print(f"FINDING case {seed}: {type(error).__name__}: {str(error)[:300]!r}", flush=True)
            if count == 1:
                raise
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    print("counts", dict(outcomes), flush=True)
    print("next", seed + 1, flush=True)


def main() -> None:
    """Run child processes until the time limit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0, help="the first case is seed * 10^9")
    parser.add_argument("--case", type=int, help="run this case alone, with its traceback (and the same --kinds)")
    parser.add_argument("--kinds", nargs="+", choices=sorted(KINDS), default=sorted(KINDS))
    parser.add_argument("--child", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case is not None or options.child:
        with tempfile.TemporaryDirectory() as folder:
            first, count = options.child or (options.case, 1)
            child(first, count, Path(folder), options.kinds)
            return
    total: Counter[tuple[str, str]] = Counter()
    first, end = options.seed * 10**9, time.monotonic() + 60 * options.minutes
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "--child", str(first), str(CASES), "--kinds", *options.kinds]
            run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TMPDIR": folder}, check=False)
            if run.returncode:
                last = max(Path(folder).glob("*/running"), default=None)
                if last is None:  # it ended before the first case
                    raise SystemExit(run.stderr)
                case = last.read_text()
                print(f"FINDING case {case}: process ended with {run.returncode}: {run.stderr[-400:]!r}", flush=True)
                total["FINDING", "crash"] += 1
                # Continue after the case that ended the process.
                first = int(case) + 1
            for line in run.stdout.splitlines():
                if line.startswith("counts "):
                    total.update(ast.literal_eval(line.removeprefix("counts ")))
                elif line.startswith("next "):
                    first = int(line.removeprefix("next "))
                else:
                    print(line, flush=True)
        print(f"{sum(total.values())} cases, up to case {first}", file=sys.stderr, flush=True)
    for (kind, outcome), count in sorted(total.items()):
        print(f"{kind:24}{outcome:24}{count:8}")
    print(f"{sum(total.values())} cases, {sum(n for (kind, _), n in total.items() if kind == 'FINDING')} findings")


if __name__ == "__main__":
    main()
