"""Products of all dense features with many vectors in single precision, in one pass.

Features are centred and divided by their norms before they are rounded, so no value over- or underflows. The products of at
most ``STRIP`` samples are added in single precision, and these sums in double precision. So the error of a product of two
vectors of norm 1 is at most about ``STRIP`` times the unit roundoff, in any order of summation.

A pass for twenty vectors takes about as long as two passes for a single one in double precision: blocks of four features
and four vectors are multiplied in registers.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel

# Samples that are added in single precision. Four features and four vectors of this length fit into the first-level cache.
STRIP = 1024
# Columns of a sample-major matrix that are processed together.
_TILE = 2048
# Bound on the rounding error of a product of vectors of norm 1: roundings of both vectors, products and sums.
ERROR = 1.01 * (STRIP + 16) * 2.0**-24


@kernel(reorder=True)
def _round_column(column, middle, factor, out):
    for i in range(column.shape[0]):
        out[i] = np.float32((column[i] - middle) * factor)


@kernel(reorder=True)
def _add_four_by_four(features, vectors, sums):
    """Add the products of four features with four vectors to ``sums``."""
    feature0, feature1, feature2, feature3 = features
    vector0, vector1, vector2, vector3 = vectors
    zero = np.float32(0.0)
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = zero
    s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = zero
    for i in range(feature0.shape[0]):
        x0, x1, x2, x3 = feature0[i], feature1[i], feature2[i], feature3[i]
        v0, v1, v2, v3 = vector0[i], vector1[i], vector2[i], vector3[i]
        s00 += x0 * v0
        s01 += x0 * v1
        s02 += x0 * v2
        s03 += x0 * v3
        s10 += x1 * v0
        s11 += x1 * v1
        s12 += x1 * v2
        s13 += x1 * v3
        s20 += x2 * v0
        s21 += x2 * v1
        s22 += x2 * v2
        s23 += x2 * v3
        s30 += x3 * v0
        s31 += x3 * v1
        s32 += x3 * v2
        s33 += x3 * v3
    sums[0, 0] += s00
    sums[0, 1] += s01
    sums[0, 2] += s02
    sums[0, 3] += s03
    sums[1, 0] += s10
    sums[1, 1] += s11
    sums[1, 2] += s12
    sums[1, 3] += s13
    sums[2, 0] += s20
    sums[2, 1] += s21
    sums[2, 2] += s22
    sums[2, 3] += s23
    sums[3, 0] += s30
    sums[3, 1] += s31
    sums[3, 2] += s32
    sums[3, 3] += s33


@kernel()
def _write_norms(sums, n_outputs, out, j):
    """Write the norm of each group of ``n_outputs`` products of feature j."""
    for q in range(out.shape[0]):
        squares = 0.0
        for c in range(q * n_outputs, (q + 1) * n_outputs):
            squares += sums[c] * sums[c]
        out[q, j] = np.sqrt(squares)


@kernel()
def feature_major_rounded_norms(matrix, vectors, n_outputs, centre, factor, features, out, start, stop):
    """Compute ``out[q, j]``, the norm of the products of feature j with the vectors of query q, for some features.

    Feature j is ``(matrix[j] - centre[j]) * factor[j]``. Query q consists of ``n_outputs`` consecutive rows of ``vectors``.
    The number of rows is a multiple of four.
    """
    n_vectors, n_samples = vectors.shape
    block = np.empty((4, STRIP), np.float32)
    sums = np.empty((4, n_vectors))
    for first in range(start, stop, 4):
        sums[:, :] = 0.0
        for begin in range(0, n_samples, STRIP):
            end = min(begin + STRIP, n_samples)
            width = end - begin
            for a in range(4):
                j = features[min(first + a, stop - 1)]
                _round_column(matrix[j, begin:end], centre[j], factor[j], block[a, :width])
            columns = (block[0, :width], block[1, :width], block[2, :width], block[3, :width])
            for k in range(0, n_vectors, 4):
                rows = (
                    vectors[k, begin:end],
                    vectors[k + 1, begin:end],
                    vectors[k + 2, begin:end],
                    vectors[k + 3, begin:end],
                )
                _add_four_by_four(columns, rows, sums[:, k : k + 4])
        for a in range(min(4, stop - first)):
            _write_norms(sums[a], n_outputs, out, features[first + a])


@kernel(reorder=True)
def _add_four_samples(sums, rows, weights):
    """Compute ``sums += weights[i] * rows[i]`` for four samples."""
    row0, row1, row2, row3 = rows
    weight0, weight1, weight2, weight3 = weights
    for f in range(row0.shape[0]):
        sums[f] += row0[f] * weight0 + row1[f] * weight1 + row2[f] * weight2 + row3[f] * weight3


@kernel(reorder=True)
def _round_row(row, middle, factor, out):
    for f in range(row.shape[0]):
        out[f] = np.float32((row[f] - middle[f]) * factor[f])


@kernel()
def sample_major_rounded_norms(matrix, vectors, n_outputs, centre, factor, features, out, start, stop):
    """Do the same for a matrix of shape (samples, features). ``features`` is not used: all features are processed."""
    n_vectors, n_samples = vectors.shape
    block = np.empty((4, _TILE), np.float32)
    partial = np.empty((n_vectors, _TILE), np.float32)
    sums = np.empty((_TILE, n_vectors))
    for first in range(start, stop, _TILE):
        last = min(first + _TILE, stop)
        width = last - first
        sums[:, :] = 0.0
        for begin in range(0, n_samples, STRIP):
            end = min(begin + STRIP, n_samples)
            partial[:, :] = 0.0
            for i in range(begin, end, 4):
                for a in range(4):
                    if i + a < end:
                        _round_row(matrix[i + a, first:last], centre[first:last], factor[first:last], block[a, :width])
                    else:
                        block[a, :width] = 0.0
                rows = (block[0, :width], block[1, :width], block[2, :width], block[3, :width])
                i1, i2, i3 = min(i + 1, end - 1), min(i + 2, end - 1), min(i + 3, end - 1)
                for k in range(n_vectors):
                    weights = (vectors[k, i], vectors[k, i1], vectors[k, i2], vectors[k, i3])
                    _add_four_samples(partial[k, :width], rows, weights)
            for k in range(n_vectors):
                for f in range(width):
                    sums[f, k] += partial[k, f]
        for f in range(width):
            _write_norms(sums[f], n_outputs, out, first + f)
