"""``coterie warm-up``: compile the kernels in advance."""

from __future__ import annotations

from coterie.cli.output import Console


def warm_up(*, console: Console) -> None:
    """Compile what fits on usual data need, and store it in the cache of numba.

    The first fit in a new process then compiles nothing. Small built-in problems cover dense and sparse data, all tasks,
    validation, confidence, rankings and files. The environment variable NUMBA_CACHE_DIR selects the folder of the cache.

    Examples:
        - coterie warm-up
        - NUMBA_CACHE_DIR=/opt/numba coterie warm-up --quiet
    """
    from coterie.compilation import PROBLEMS
    from coterie.compilation import warm_up as compile_problems

    names = list(PROBLEMS)
    done = compile_problems(report=lambda name: console.note(f"{names.index(name) + 1}/{len(names)} {name}"))
    console.show(f"{len(done.kernels):,} kernels compiled in {done.seconds:.0f} s. Cache: {done.folder}")
    console.result({"n_kernels": len(done.kernels), "seconds": done.seconds, "folder": str(done.folder)})
