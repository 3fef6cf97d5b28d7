"""Kernels of the master problem: sparse designs and the block subproblem."""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel

# Rows and columns of a tile that is transposed in the cache.
_TILE = 32
# Sweeps of block descent before the nonzero blocks make Newton steps together, time after time. A few sweeps determine which
# blocks are zero.
SWEEPS = (5, 5, 20, 50, 200, 500)
# Relative increase of an objective that is due to rounding. The last Newton step, which has more correct digits than its
# objective shows, may cause one.
ROUNDING = 1e-15


@kernel()
def number_by_first(labels, first):
    """Renumber non-negative labels in the order of their first occurrence. -1 is kept.

    The positions of the first occurrences are written to ``first``, which has capacity for all labels. Returns the number of
    distinct labels.
    """
    number = np.empty(first.shape[0], np.int64)
    number[:] = -1
    count = 0
    for i in range(labels.shape[0]):
        label = labels[i]
        if label >= 0:
            if number[label] < 0:
                number[label] = count
                first[count] = i
                count += 1
            labels[i] = number[label]
    return count


@kernel()
def sums_by_label(labels, values, sums):
    """Add each value to the sum of its label, in the order of the values. Values of negative labels are skipped."""
    for i in range(labels.shape[0]):
        if labels[i] >= 0:
            sums[labels[i]] += values[i]


@kernel()
def values_by_label(labels, values, out):
    """Write ``values[labels[i]]`` to ``out[i]``, without a copy of the labels as 64-bit indices. -1 is the last row."""
    for i in range(labels.shape[0]):
        label = labels[i] if labels[i] >= 0 else values.shape[0] - 1
        for c in range(values.shape[1]):
            out[i, c] = values[label, c]


@kernel()
def shares_by_label(labels, values, weight, sums, out):
    """Write ``values[labels[i]]`` times the share of a sample's weight in that of its label to ``out[i]``, 0 without label."""
    for i in range(labels.shape[0]):
        label = labels[i]
        share = weight[i] / sums[label] if label >= 0 else 0.0
        for c in range(values.shape[1]):
            out[i, c] = values[label, c] * share if label >= 0 else 0.0


@kernel()
def csr_with_columns(
    indptr, indices, values, parent, n_columns, fresh_indptr, fresh_indices, fresh_values, row_of, out_indptr
):
    """Append columns to a matrix by rows: row r has the entries of row ``parent[r]``, then the fresh entries of its sample.

    ``row_of`` is the row of each sample, or -1. ``out_indptr`` must be zero and is filled. Returns indices and values.
    """
    n_rows = parent.shape[0]
    n_fresh = fresh_indptr.shape[0] - 1
    for r in range(n_rows):
        out_indptr[r + 1] = indptr[parent[r] + 1] - indptr[parent[r]]
    for p in range(fresh_indptr[n_fresh]):
        r = row_of[fresh_indices[p]]
        if r >= 0:
            out_indptr[r + 1] += 1
    for r in range(n_rows):
        out_indptr[r + 1] += out_indptr[r]
    out_indices = np.empty(out_indptr[n_rows], np.int64)
    out_values = np.empty(out_indptr[n_rows])
    ends = np.empty(n_rows, np.int64)
    for r in range(n_rows):
        first = indptr[parent[r]]
        size = indptr[parent[r] + 1] - first
        for k in range(size):
            out_indices[out_indptr[r] + k] = indices[first + k]
            out_values[out_indptr[r] + k] = values[first + k]
        ends[r] = out_indptr[r] + size
    for b in range(n_fresh):
        for p in range(fresh_indptr[b], fresh_indptr[b + 1]):
            r = row_of[fresh_indices[p]]
            if r >= 0:
                out_indices[ends[r]] = n_columns + b
                out_values[ends[r]] = fresh_values[p]
                ends[r] += 1
    return out_indices, out_values


@kernel()
def csr_output(indptr, indices, values, coef, out):
    """Compute ``out = X coef`` for a sparse design by rows."""
    n_outputs = coef.shape[1]
    if n_outputs == 1:
        for i in range(indptr.shape[0] - 1):
            total = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                total += values[p] * coef[indices[p], 0]
            out[i, 0] = total
        return
    for i in range(indptr.shape[0] - 1):
        for c in range(n_outputs):
            out[i, c] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            for c in range(n_outputs):
                out[i, c] += values[p] * coef[indices[p], c]


@kernel()
def csr_scores(indptr, indices, values, residual, out):
    """Compute ``out = X' residual'`` for a sparse design by rows and a residual by outputs. Skips zero residuals."""
    out[:, :] = 0.0
    for c in range(residual.shape[0]):
        for i in range(indptr.shape[0] - 1):
            r = residual[c, i]
            if r != 0.0:
                for p in range(indptr[i], indptr[i + 1]):
                    out[indices[p], c] += values[p] * r


@kernel()
def csr_hessians(indptr, indices, values, curvature, strata, signs, n_strata, previous, products, out, first, last):
    r"""Compute the Hessians ``out[c]`` of the outputs from ``first`` to ``last``, with eliminated offsets projected out.

    ``curvature`` has one row per output. ``strata`` and ``signs`` of shape (samples, outputs) contain the offset of each
    sample and its sign: :math:`X'\mathrm{diag}(h)X - \sum_e u_e u_e'/\kappa_e` (see the losses). ``products[c]`` is the sum of
    the samples' outer products for the curvature ``previous``, each pair in one of its two positions. Both are updated. Only
    samples whose curvature has changed cost time, unless most of them have.
    """
    size = out.shape[1]
    mixed = np.empty((n_strata, size))
    total = np.empty(n_strata)
    for c in range(first, last):
        _reset_if_most_change(curvature[c], previous[c], products[c])
        mixed[:, :] = 0.0
        total[:] = 0.0
        for i in range(indptr.shape[0] - 1):
            w = curvature[c, i]
            if w != previous[c, i]:
                _add_outer(indices, values, indptr[i], indptr[i + 1], w - previous[c, i], products[c])
                previous[c, i] = w
            if w != 0.0 and n_strata > 0:
                e = strata[i, c]
                total[e] += w
                signed = w * signs[i, c]
                for p in range(indptr[i], indptr[i + 1]):
                    mixed[e, indices[p]] += signed * values[p]
        hessian = out[c]
        _add_halves(products[c], hessian)
        for e in range(n_strata):
            if total[e] > 0.0:
                for a in range(size):
                    share = mixed[e, a] / total[e]
                    for b in range(size):
                        hessian[a, b] -= share * mixed[e, b]


@kernel()
def _add_halves(products, out):
    """Write ``products`` plus its transpose to ``out``, with an unchanged diagonal, in tiles that fit into the cache."""
    size = out.shape[0]
    for above in range(0, size, _TILE):
        for left in range(0, above + 1, _TILE):
            for a in range(above, min(above + _TILE, size)):
                for b in range(left, min(left + _TILE, a)):
                    out[a, b] = out[b, a] = products[a, b] + products[b, a]
    for a in range(size):
        out[a, a] = products[a, a]


@kernel()
def _reset_if_most_change(curvature, previous, products):
    """Reset the products if recomputing them is less work. It is also more accurate."""
    n_active = 0
    n_changed = 0
    for i in range(curvature.shape[0]):
        if curvature[i] != 0.0:
            n_active += 1
        if curvature[i] != previous[i]:
            n_changed += 1
    if n_changed > n_active:
        previous[:] = 0.0
        products[:, :] = 0.0


@kernel()
def _add_outer(indices, values, first, last, weight, out):
    """Add the weighted outer product of one row's nonzeros, each pair in one of its two positions."""
    for p in range(first, last):
        scaled = weight * values[p]
        a = indices[p]
        for r in range(first, p + 1):
            out[a, indices[r]] += scaled * values[r]


@kernel()
def block_radius(curvature, linear, others):
    r"""Return the norm of the minimiser of :math:`\tfrac12(S + \|v\|)^2 + \tfrac12\sum\lambda_i v_i^2 + c'v`.

    It is 0 if :math:`\|c\| \le S`. Otherwise :math:`v_i = -c_i r / ((1 + \lambda_i) r + S)`, where
    :math:`r = \|v\|` is the root of :math:`\varphi(r) = \sum (c_i / ((1+\lambda_i) r + S))^2 - 1`, which
    Newton's method on :math:`1 - (\varphi + 1)^{-1/2}` finds monotonically from r = 0.
    """
    size = linear.shape[0]
    total = 0.0
    for i in range(size):
        total += linear[i] ** 2
    if total <= others * others:
        return 0.0
    if others == 0.0:
        radius = 0.0
        for i in range(size):
            radius += (linear[i] / (1.0 + curvature[i])) ** 2
        return np.sqrt(radius)
    radius = 0.0
    for _ in range(100):
        value = 0.0
        slope = 0.0
        for i in range(size):
            denominator = (1.0 + curvature[i]) * radius + others
            share = (linear[i] / denominator) ** 2
            value += share
            slope += share * (1.0 + curvature[i]) / denominator
        # g(r) = value^(-1/2) is concave and increasing; solve g(r) = 1.
        root = np.sqrt(value)
        step = value * (root - 1.0) / slope
        radius += step
        if step <= 1e-15 * radius:
            break
    return radius


@kernel()
def block_descent(hessian, linear, blocks, values, vectors, coef, max_sweeps, tol):
    r"""Minimise :math:`\tfrac12(\sum_t\|W_t\|)^2 + \langle G, W\rangle + \tfrac12\sum_c W_c'H_cW_c` by blocks.

    Each block is minimised exactly, in the eigenbasis of its diagonal blocks of ``hessian``. Eigenvalues and eigenvectors of
    block ``blocks[t]:blocks[t + 1]`` are in these rows of ``values[c]`` and ``vectors[c]``. ``coef`` of shape
    (features, outputs) is updated in place. Returns the number of sweeps.
    """
    n_outputs = hessian.shape[0]
    n_features = coef.shape[0]
    n_blocks = blocks.shape[0] - 1
    gradient = linear.copy()
    for c in range(n_outputs):
        for j in range(n_features):
            if coef[j, c] != 0.0:
                for i in range(n_features):
                    gradient[i, c] += hessian[c, i, j] * coef[j, c]
    norms = np.zeros(n_blocks)
    for t in range(n_blocks):
        for j in range(blocks[t], blocks[t + 1]):
            for c in range(n_outputs):
                norms[t] += coef[j, c] ** 2
        norms[t] = np.sqrt(norms[t])
    widest = 0
    for t in range(n_blocks):
        widest = max(widest, blocks[t + 1] - blocks[t])
    slope = np.empty(widest * n_outputs)
    curvature = np.empty(widest * n_outputs)
    updated = np.empty((widest, n_outputs))
    n_sweeps = 0
    while n_sweeps < max_sweeps:
        n_sweeps += 1
        largest_change = 0.0
        largest_coef = 0.0
        for t in range(n_blocks):
            first = blocks[t]
            width = blocks[t + 1] - first
            others = 0.0
            for s in range(n_blocks):
                if s != t:
                    others += norms[s]
            # The block's linear term without its quadratic part, in the eigenbasis.
            for c in range(n_outputs):
                for e in range(width):
                    total = 0.0
                    own = 0.0
                    for j in range(width):
                        total += vectors[c, first + j, e] * gradient[first + j, c]
                        own += vectors[c, first + j, e] * coef[first + j, c]
                    curvature[c * width + e] = values[c, first + e]
                    slope[c * width + e] = total - values[c, first + e] * own
            size = width * n_outputs
            radius = block_radius(curvature[:size], slope[:size], others)
            for c in range(n_outputs):
                for j in range(width):
                    total = 0.0
                    if radius > 0.0:
                        for e in range(width):
                            q = c * width + e
                            share = -slope[q] * radius / ((1.0 + curvature[q]) * radius + others)
                            total += vectors[c, first + j, e] * share
                    updated[j, c] = total
            norms[t] = radius
            for c in range(n_outputs):
                for j in range(width):
                    change = updated[j, c] - coef[first + j, c]
                    largest_coef = max(largest_coef, abs(updated[j, c]))
                    if change != 0.0:
                        largest_change = max(largest_change, abs(change))
                        coef[first + j, c] = updated[j, c]
                        for i in range(n_features):
                            gradient[i, c] += hessian[c, first + j, i] * change
        if largest_change <= tol * largest_coef:
            break
    return n_sweeps


@kernel()
def block_newton(hessian, linear, blocks, coef):
    r"""Make damped Newton steps on :math:`\tfrac12(\sum_t\|w_t\|)^2 + g'w + \tfrac12 w'Hw`, with zero blocks held at zero.

    ``coef`` of shape (features,) is updated in place, and the objective never increases, up to rounding. With the unit
    vectors :math:`u_t` of the blocks, the sum S of their norms and :math:`\lambda_t = S/\|w_t\|`, the penalty's second
    derivative is :math:`uu' + \sum_t\lambda_t(I_t - u_tu_t')`.
    """
    rows = np.empty(coef.shape[0], np.int64)
    owner = np.empty(coef.shape[0], np.int64)
    n = 0
    n_blocks = 0
    for t in range(blocks.shape[0] - 1):
        size = 0.0
        for j in range(blocks[t], blocks[t + 1]):
            size += coef[j] ** 2
        if size > 0.0:
            for j in range(blocks[t], blocks[t + 1]):
                rows[n] = j
                owner[n] = n_blocks
                n += 1
            n_blocks += 1
    if n == 0:
        return
    own = np.empty((n, n))
    slope = np.empty(n)
    weights = np.empty(n)
    for i in range(n):
        slope[i] = linear[rows[i]]
        weights[i] = coef[rows[i]]
        for j in range(n):
            own[i, j] = hessian[rows[i], rows[j]]
    curved = np.zeros(n)
    add_product(own, weights, curved)
    norms = np.empty(n_blocks)
    value = _block_value(slope, weights, curved, owner, norms)
    system = np.empty((n, n))
    unit = np.empty(n)
    direction = np.empty(n)
    along = np.empty(n)
    trial = np.empty(n)
    trial_curved = np.empty(n)
    trial_norms = np.empty(n_blocks)
    for _ in range(10):
        total = 0.0
        for t in range(n_blocks):
            total += norms[t]
        for i in range(n):
            unit[i] = weights[i] / norms[owner[i]]
            direction[i] = -slope[i] - curved[i] - total * unit[i]
        for i in range(n):
            for j in range(i + 1):
                system[i, j] = own[i, j] + unit[i] * unit[j]
            j = i
            while j >= 0 and owner[j] == owner[i]:
                system[i, j] -= total / norms[owner[i]] * unit[i] * unit[j]
                j -= 1
            system[i, i] += total / norms[owner[i]]
        if not _solve_in_place(system, direction):
            break
        along[:] = 0.0
        add_product(own, direction, along)
        step = 1.0
        found = False
        while step > 1e-4 and not found:
            for i in range(n):
                trial[i] = weights[i] + step * direction[i]
                trial_curved[i] = curved[i] + step * along[i]
            trial_value = _block_value(slope, trial, trial_curved, owner, trial_norms)
            found = trial_value < value or (step == 1.0 and trial_value <= value + ROUNDING * abs(value))
            for t in range(n_blocks):
                found = found and trial_norms[t] > 0.0
            step *= 0.5
        if not found:
            break
        improvement = value - trial_value
        value = trial_value
        # Names are swapped instead of copying arrays, because compiling the shape check of a copy would take two seconds.
        weights, trial = trial, weights
        curved, trial_curved = trial_curved, curved
        norms, trial_norms = trial_norms, norms
        if improvement <= ROUNDING * abs(value):
            break
    for i in range(n):
        coef[rows[i]] = weights[i]


@kernel()
def add_product(matrix, vector, out):
    """Add a symmetric matrix times a vector, in a loop that the compiler can vectorise."""
    for j in range(matrix.shape[0]):
        for i in range(matrix.shape[0]):
            out[i] += matrix[j, i] * vector[j]


@kernel()
def _block_value(linear, weights, curved, owner, norms):
    """Return the objective of :func:`block_newton`, and write the norms of the blocks to ``norms``."""
    norms[:] = 0.0
    value = 0.0
    for i in range(weights.shape[0]):
        norms[owner[i]] += weights[i] ** 2
        value += weights[i] * (linear[i] + 0.5 * curved[i])
    total = 0.0
    for t in range(norms.shape[0]):
        norms[t] = np.sqrt(norms[t])
        total += norms[t]
    return value + 0.5 * total * total


@kernel()
def _solve_in_place(system, right):
    """Solve a system with a symmetric matrix, given by its lower half. Overwrites both. False if not positive definite."""
    n = right.shape[0]
    column = np.empty(n)
    for j in range(n):
        if not system[j, j] > 0.0:
            return False
        pivot = np.sqrt(system[j, j])
        system[j, j] = pivot
        for i in range(j + 1, n):
            system[i, j] /= pivot
            column[i] = system[i, j]
        for i in range(j + 1, n):
            factor = column[i]
            for k in range(j + 1, i + 1):
                system[i, k] -= factor * column[k]
    for i in range(n):
        total = right[i]
        for k in range(i):
            total -= system[i, k] * right[k]
        right[i] = total / system[i, i]
    for i in range(n - 1, -1, -1):
        right[i] /= system[i, i]
        for k in range(i):
            right[k] -= system[i, k] * right[i]
    return True
