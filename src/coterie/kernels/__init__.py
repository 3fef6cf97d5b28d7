"""Compiled functions over columns, in dense and CSC versions.

Compile time counts, because the first fit in a new environment waits for it (``benchmarks/compile_times.py``). A counter that
is passed to another kernel starts as ``np.int64(0)``, because the literal 0 is a type of its own and compiles that kernel
twice. ``np.empty`` compiles faster than ``np.zeros``.
"""
