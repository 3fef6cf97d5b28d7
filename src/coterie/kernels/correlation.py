r"""Which features can be correlated with a support feature, and which are.

**Notation.** Features are vectors in the inner product weighted by the sample weights
:math:`\omega`; :math:`\bar f` is a centred feature, :math:`N_f = \|\bar f\|` its centred norm,
:math:`\mu_f` its mean, :math:`W = \sum_i \omega_i`. The correlation is
:math:`\rho(f, z) = \langle \bar f, \bar z \rangle / (N_f N_z)`.

**Angle bound.** Let :math:`a` be any vector and :math:`\theta_f = \arccos |r_f|` the angle between
the *lines* spanned by :math:`\bar f` and :math:`a`, with :math:`r_f = \rho(f, a)`. Angles between
lines satisfy the triangle inequality, hence
:math:`\arccos|\rho(f,z)| \ge |\theta_f - \theta_z|`, and :math:`|\rho(f,z)| \ge t` needs
:math:`|\theta_f - \theta_z| \le \arccos t`. Solved for :math:`|r_f|` this is one interval for each
support feature, so that a pair costs two comparisons and no arc cosine:
:math:`\cos(\min(\theta_z + \arccos t, \pi/2)) \le |r_f| \le \cos(\max(\theta_z - \arccos t, 0))`.

**Size bound** (sparse features). The product runs over the samples where both are nonzero. For a
feature with c nonzeros

.. math:: |\langle f, z\rangle| \le \|f\| \, \|z|_{\mathrm{supp} f}\| \le \|f\| \, T_z(c),

where :math:`T_z(c)` is the norm of the c largest entries of :math:`\sqrt\omega z`. With
:math:`\langle \bar f,\bar z\rangle = \langle f,z\rangle - W\mu_f\mu_z`,

.. math:: |\rho(f, z)| \le (\|f\|\,T_z(c) + W|\mu_f\mu_z|) / (N_f N_z),

and where both features are non-negative the product is too, so that
:math:`-W\mu_f\mu_z \le \langle \bar f,\bar z\rangle \le \|f\|\,T_z(c) - W\mu_f\mu_z`. (For two binary columns with
counts :math:`a \le b` and unit weights that is :math:`\rho \le \sqrt{a(n-b) / (b(n-a))}`: the best there
is, since nested columns reach it.) The feature itself can be eliminated: let S be the weight of its
nonzero samples; :math:`W\mu_f^2 \le (S/W)\|f\|^2` (Cauchy-Schwarz), so :math:`\|f\| \le N_f/\sqrt{1-S/W}` and
:math:`\sqrt W|\mu_f| \le N_f\sqrt{(S/W)/(1-S/W)}`. With the largest weight that c samples can have for S,
the bound

.. math:: \max\big(T_z(c) + [\text{signs}]\sqrt S|\mu_z|,\ \sqrt S|\mu_z|\big) \big/ \big(N_z\sqrt{1 - S/W}\big)

(the bracket is 1 if there are negative values, else 0) depends on c alone and grows with it: each
support feature has a fewest number of nonzeros under which no feature is affiliated with it, and a
pair costs one comparison of integers.

**Overlap** (sparse features). A pair without a common nonzero sample has the product
:math:`-W\mu_f\mu_z`; going through the support features by sample, such pairs are never met.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel

# A pair is only pruned when its bound is below the threshold by this much: far above rounding.
SAFETY = 1e-9


@kernel()
def within_angle(score, score_shift, mean, norm, exemplar_norm, lowest, highest, wanted, start, stop):
    """Set bit k of ``wanted[f]`` where the angle bound does not exclude feature f and support feature k.

    The correlation of a feature with the exemplar is
    ``(score_f - score_shift * mean_f) / (norm_f * exemplar_norm)``; ``lowest`` and ``highest`` are the
    interval for each support feature.
    """
    for f in range(start, stop):
        wanted[f] = 0
        if norm[f] == 0.0:
            continue
        r = abs(score[f] - score_shift * mean[f]) / (norm[f] * exemplar_norm)
        for k in range(lowest.shape[0]):
            if lowest[k] <= r <= highest[k]:
                wanted[f] |= 1 << k


@kernel()
def fewest_nonzeros(indptr, squares, shares, total_weight, nonnegative, means, norms, threshold, fewest):
    """The size bound: nonzeros that a feature needs for a correlation of at least the threshold with each support feature.

    ``squares`` are the weighted squares of the support features' entries, the largest of each one first; ``shares`` the
    largest parts of the total weight that 0, 1, 2, … samples can have. Where none suffices it is one more than the support
    feature has itself.
    """
    for k in range(indptr.shape[0] - 1):
        largest = 0.0
        count = 0
        n_stored = indptr[k + 1] - indptr[k]
        while count <= n_stored:
            if count > 0:
                largest += squares[indptr[k] + count - 1]
            tail = np.sqrt(shares[count] * total_weight) * abs(means[k])
            top = np.sqrt(largest) if nonnegative else np.sqrt(largest) + tail
            room = np.sqrt(max(1.0 - shares[count], 0.0))
            if max(top, tail) >= (threshold - SAFETY) * norms[k] * room:
                break
            count += 1
        fewest[k] = count


@kernel()
def csc_cross(indptr, indices, values, other_indptr, other_indices, other_values, begins, symmetric, out):
    """Add the products of all columns of one sparse matrix with those of another to ``out``; ``begins`` are zeros.

    The other matrix is turned to rows first, so that only samples that both columns have cost anything. The sum of a pair
    goes through the samples in the order of the first column, whatever else there is. Where both are the same columns
    (``symmetric``), a pair is computed once: ``out`` begins as zeros, and the samples of all columns are in order.
    """
    n_samples = begins.shape[0] - 1
    n_others = other_indptr.shape[0] - 1
    for p in range(other_indptr[0], other_indptr[n_others]):
        begins[other_indices[p] + 1] += 1
    for i in range(n_samples):
        begins[i + 1] += begins[i]
    total = begins[n_samples]
    owner = np.empty(total, np.int64)
    share = np.empty(total)
    for b in range(n_others):  # rows are filled from their begins, which move to their ends: the begins of the next rows
        for p in range(other_indptr[b], other_indptr[b + 1]):
            place = begins[other_indices[p]]
            owner[place] = b
            share[place] = other_values[p]
            begins[other_indices[p]] += 1
    for a in range(indptr.shape[0] - 1):
        for p in range(indptr[a], indptr[a + 1]):
            i = indices[p]
            for q in range(begins[i - 1] if i > 0 else 0, begins[i]):
                if symmetric and owner[q] > a:
                    break
                out[a, owner[q]] += values[p] * share[q]
    if symmetric:
        for a in range(indptr.shape[0] - 1):
            for b in range(a):
                out[b, a] = out[a, b]
