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

**Size bound** (sparse features). The product runs over the samples where both are nonzero:

.. math::
    |\langle f, z\rangle| \le \|f\| \, \|z|_{\mathrm{supp} f}\| \le \|f\| \, T_z(\mathrm{nnz}_f),
    \qquad
    |\langle f, z\rangle| \le \|z\| \, \|f|_{\mathrm{supp} z}\| \le \|z\| \, \|f\|_\infty
    \sqrt{\omega(\mathrm{supp} z)},

where :math:`T_z(c)` is the norm of the c largest entries of :math:`\sqrt\omega z` (a table of
cumulative sums, O(1) to look up), and :math:`\omega(\cdot)` the weight of a set of samples. With
:math:`B` the smaller of the two and :math:`\langle \bar f,\bar z\rangle = \langle f,z\rangle - W\mu_f\mu_z`,

.. math:: |\rho(f, z)| \le (B + W|\mu_f\mu_z|) / (N_f N_z),

and where both features are non-negative the product is too, so that
:math:`-W\mu_f\mu_z \le \langle \bar f,\bar z\rangle \le B - W\mu_f\mu_z`. For two binary columns with
counts :math:`a \le b` and unit weights :math:`B = a`, and the bound is
:math:`\sqrt{a(n-b) / (b(n-a))}`: the best there is, since nested columns reach it.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel

# A pair is only pruned when its bound is below the threshold by this much: far above rounding.
SAFETY = 1e-9


@kernel()
def may_affiliate(
    score, score_shift, mean, norm, exemplar_norm, lowest, highest,
    use_size, n_nonzero, largest, total_weight, nonnegative,
    table, table_start, support_mean, support_norm, support_length, support_weight, threshold,
    keep, start, stop,
):  # fmt: skip
    """Set ``keep[f]`` where neither bound excludes the pair of feature f and some support feature.

    The correlation of a feature with the exemplar is
    ``(score_f - score_shift * mean_f) / (norm_f * exemplar_norm)``; ``lowest`` and ``highest`` are
    the angle bound's interval for each support feature. ``table[table_start[k] + c]`` is the norm
    of the c largest entries of support feature k, ``support_length`` its norm before centring,
    ``support_weight`` the square root of the weight of its nonzero samples.
    """
    n_supports = support_mean.shape[0]
    for f in range(start, stop):
        keep[f] = False
        if norm[f] == 0.0:
            continue
        r = abs(score[f] - score_shift * mean[f]) / (norm[f] * exemplar_norm)
        length = np.sqrt(norm[f] ** 2 + total_weight * mean[f] ** 2)
        for k in range(n_supports):
            if r < lowest[k] - SAFETY or r > highest[k] + SAFETY:
                continue
            if use_size:
                count = min(np.int64(n_nonzero[f]), table_start[k + 1] - table_start[k] - 1)
                product = min(
                    length * table[table_start[k] + count],
                    support_length[k] * largest[f] * support_weight[k],
                )
                shift = total_weight * mean[f] * support_mean[k]
                bound = max(product - shift, shift) if nonnegative else product + abs(shift)
                if bound < (threshold - SAFETY) * norm[f] * support_norm[k]:
                    continue
            keep[f] = True
            break


@kernel()
def strong_correlations(products, features, norm, threshold):
    """The pairs with ``|products[f, k]| >= threshold * norm_f``: (feature, support, correlation) each.

    ``products`` are those with the support features' centred and normalised vectors.
    """
    n_features, n_supports = products.shape
    count = 0
    for f in range(n_features):
        limit = threshold * norm[features[f]]
        for k in range(n_supports):
            if limit > 0.0 and abs(products[f, k]) >= limit:
                count += 1
    feature = np.empty(count, dtype=np.int64)
    support = np.empty(count, dtype=np.int64)
    correlation = np.empty(count)
    count = 0
    for f in range(n_features):
        j = features[f]
        limit = threshold * norm[j]
        for k in range(n_supports):
            if limit > 0.0 and abs(products[f, k]) >= limit:
                feature[count] = j
                support[count] = k
                correlation[count] = min(1.0, max(-1.0, products[f, k] / norm[j]))
                count += 1
    return feature, support, correlation
