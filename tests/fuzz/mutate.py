"""Mutates small files of every format for as long as one likes: any bytes must give data or one clear error.

``python tests/fuzz/mutate.py --minutes 60 --seed 1``. Cases run in child processes, some hundred each, so that a crash
is found too; a child may take a few hundred megabytes and some seconds a case. A case is known by its seed, which
``--case`` runs again alone. Findings become tests.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
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
from collections import Counter
from pathlib import Path

CASES = 300
SECONDS = 30
MEGABYTES = 700
TOKENS = [
    b"0", b"1", b"-1", b"9999999999", b"99999999999999999999", b"1e999", b"nan", b"inf", b":", b" ", b"\n", b"\r\n", b"#",
    b"qid:1", b",", b"\t", b'"', b"\0", b"%", b"\xff", b"2147483648", b"4294967296", b"-0", b".", b"e", b"1:1",
    b" 5:", b"NA", b"label",
]  # fmt: skip


def make_seeds(folder: Path) -> dict[str, list[Path]]:
    """Small valid files of every format."""
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
    import anndata
    import pandas as pd
    from bed_reader import to_bed

    pd.DataFrame({"a": y * 0.5, "b": y, "y": ["u", "v"] * 6}).to_parquet(folder / "a.parquet")
    seeds["parquet"] = [folder / "a.parquet"]
    for name, values in (("csr", S), ("dense", X.astype(np.float32)), ("csc", S.tocsc())):
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
    return seeds


def mutated(content: bytes, rng: random.Random) -> bytes:
    """A few changes of many kinds."""
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


def run_case(seed: int, seeds: dict[str, list[Path]], work: Path) -> str:
    """One mutated file; returns what came of it, or raises what must not be."""
    import numpy as np

    from coterie.data import check_store, open_features

    rng = random.Random(seed)
    kind = rng.choice(sorted(seeds))
    seed_file = rng.choice(seeds[kind])
    content = mutated(seed_file.read_bytes(), rng)
    if kind in ("store", "plink"):
        folder = work / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(seed_file.parent, folder) if kind == "store" else folder.mkdir()
        if kind == "plink":
            for file in seeds["plink"]:
                shutil.copy(file, folder)
        (folder / seed_file.name).write_bytes(content)
        target = folder if kind == "store" else folder / "g.bed"
    else:
        target = folder = work / seed_file.name
        target.write_bytes(content)
    options = {"label": "kind"} if kind == "h5ad" and rng.random() < 0.5 else {}
    try:
        dataset = open_features(target, format=kind, **options)
        if dataset.source.products(np.ones((dataset.shape[0], 1))).shape != (dataset.shape[1], 1):
            raise AssertionError("products have the wrong shape")
        for names in (dataset.feature_names, dataset.sample_names):
            list(names or ())
        result = "data"
    except (ValueError, OSError) as error:
        message = str(error)
        if str(folder) not in message or "\n" in message:
            raise AssertionError(f"not one line with the file's name: {message!r}") from error
        if os.environ.get("FUZZ_SHOW"):
            print(kind, message, flush=True)
        return "error"
    if kind == "libsvm":
        compare_with_scikit_learn(target, dataset)
    if kind == "store" and content != seed_file.read_bytes():
        try:
            check_store(target)
        except (ValueError, OSError):
            return "damage found"
        raise AssertionError("a changed store passes its check")
    return result


def compare_with_scikit_learn(path: Path, dataset: object) -> None:
    """What our reader takes, scikit-learn's takes too, to the last bit."""
    import numpy as np
    from sklearn.datasets import load_svmlight_file

    from coterie.data.readers.byte_stream import open_binary

    with open_binary(path) as file:
        content = file.read()
    X, y = load_svmlight_file(io.BytesIO(content))
    ours = dataset.source.block(0, dataset.shape[1])
    if X.shape != dataset.shape or (X.tocsc() != ours).nnz or not np.array_equal(y, dataset.y):
        raise AssertionError("scikit-learn reads something else")


def child(first: int, count: int, folder: Path) -> None:
    """Run some cases; prints one line a finding, and the counts at the end."""
    import numpy as np

    from coterie.data import open_features

    warnings.simplefilter("ignore")
    (folder / "seeds").mkdir()
    seeds = make_seeds(folder / "seeds")
    for files in seeds.values():  # compile and import everything before memory is limited
        target = files[0].parent if files[0].parent.suffix == ".store" else files[0]
        dataset = open_features(target)
        dataset.source.products(np.ones((dataset.shape[0], 1)))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEGABYTES * 2**20,) * 2)
    outcomes: Counter[str] = Counter()
    for seed in range(first, first + count):
        (folder / "running").write_text(str(seed))
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of processor time: other work on the machine does not count
        try:
            outcomes[run_case(seed, seeds, folder)] += 1
        except BaseException as error:
            outcomes["FINDING"] += 1
            print(f"FINDING case {seed}: {type(error).__name__}: {str(error)[:300]!r}", flush=True)
            if count == 1:
                raise
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    print("counts", dict(outcomes), flush=True)


def main() -> None:
    """Start children until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0, help="the first case is seed * 10^9")
    parser.add_argument("--case", type=int, help="run this case alone, with its traceback")
    parser.add_argument("--child", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.case is not None or options.child:
            first, count = options.child or (options.case, 1)
            child(first, count, Path(folder))
            return
    total: Counter[str] = Counter()
    first, end = options.seed * 10**9, time.monotonic() + 60 * options.minutes
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "--child", str(first), str(CASES)]
            run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TMPDIR": folder}, check=False)
            if run.returncode:
                last = max(Path(folder).glob("*/running"), default=None)
                case = last.read_text() if last else "?"
                print(f"FINDING case {case}: the process ended with {run.returncode}: {run.stderr[-400:]!r}", flush=True)
                total["CRASH"] += 1
                # Go on after the case that ended it.
                first = int(case) + 1 if last else first + CASES
            else:
                first += CASES
            for line in run.stdout.splitlines():
                if line.startswith("counts "):
                    total.update(eval(line.removeprefix("counts ")))
                else:
                    print(line, flush=True)
        print(f"{dict(total)} up to case {first}", file=sys.stderr, flush=True)
    print(f"{sum(total.values())} cases: {dict(total)}")


if __name__ == "__main__":
    main()
