r"""Kernels of linear models with a squared norm, in terms of the inner products between samples, or of the columns.

.. math:: \min_{w, a} \tfrac12\|w\|^2 + \tfrac12\sum_k\lambda_k a_k^2 + \tfrac12\sum_i c_i\,(t_i - x_i'w - b_i'a)^2_{[+]}

The columns of B are fitted beside the features: the intercept with penalty 0, and covariates. For classes, t is ±1 and only
errors of the sign of t count (the squared hinge loss). For regression all errors count. With
:math:`w = X'\beta` the problem depends on the features only through :math:`K = XX'`.

For a given set A of samples whose errors count, the optimum solves

.. math:: (K_{AA} + \mathrm{diag}(1/c_A))\,\beta_A + B_A a = t_A, \qquad B_A'\beta_A = \lambda a,

by one Cholesky factorisation. Newton's method with an exact line search repeats this with the set at the new point. It ends
exactly when the set does not change.

If there are fewer columns than samples, the weights are the unknowns instead (:func:`fit_columns`). With the columns of B
appended to X, and with :math:`\lambda = 1` for the features, the optimum for a set A solves

.. math:: (X_A'\mathrm{diag}(c_A)X_A + \mathrm{diag}(\lambda))\,w = X_A'\mathrm{diag}(c_A)\,t_A.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel

_MAX_STEPS = 200
_MAX_LINE_STEPS = 60
# Largest number of stages with smaller weights of the loss.
_MAX_STAGES = 20


@kernel()
def _factorise(system, n):
    """Overwrite the upper triangle of an n × n matrix by U with U'U equal to it. Return False if it is not definite.

    Four pivots at a time, so that each remaining row is read and written once per four.
    """
    for first in range(0, n, 4):
        last = min(first + 4, n)
        for k in range(first, last):
            pivot = system[k]
            for h in range(first, k):
                above = system[h]
                factor = above[k]
                for j in range(k, n):
                    pivot[j] -= factor * above[j]
            if not pivot[k] > 0.0:
                return False
            root = 1.0 / np.sqrt(pivot[k])
            for j in range(k, n):
                pivot[j] *= root
        if last < n:
            a, b, c, d = system[first], system[first + 1], system[first + 2], system[first + 3]
            for i in range(last, n):
                row = system[i]
                e, f, g, h = a[i], b[i], c[i], d[i]
                for j in range(i, n):
                    row[j] -= e * a[j] + f * b[j] + g * c[j] + h * d[j]
    return True


@kernel()
def _solve_lower(factor, n, right):
    """Overwrite a vector by its solution with U'."""
    for k in range(n):
        row = factor[k]
        value = right[k] / row[k]
        right[k] = value
        for j in range(k + 1, n):
            right[j] -= value * row[j]


@kernel(reorder=True)
def _solve_upper(factor, n, right):
    """Overwrite a vector by its solution with U."""
    for k in range(n - 1, -1, -1):
        row = factor[k]
        value = right[k]
        for j in range(k + 1, n):
            value -= row[j] * right[j]
        right[k] = value / row[k]


@kernel(reorder=True)
def _dot(first, second):
    """Return the inner product of two vectors."""
    value = 0.0
    for i in range(len(first)):
        value += first[i] * second[i]
    return value


@kernel()
def _find_active(error, target, weight, hinge, active):
    """Write the samples whose errors count, and return whether they are those that were active."""
    same = True
    for i in range(len(error)):
        counts = weight[i] > 0.0 and (not hinge or error[i] * target[i] > 0.0)
        same = same and counts == active[i]
        active[i] = counts
    return same


@kernel()
def _move(values, new, length):
    """Move values by a share of their distance to new ones: all of it for 1. Loops compile faster than array expressions."""
    for i in range(len(values)):
        values[i] = new[i] if length == 1.0 else values[i] + length * (new[i] - values[i])


@kernel()
def _write_outputs(products, beta, outputs):
    """Write the products K beta. Most entries of beta may be zero."""
    for i in range(len(outputs)):
        outputs[i] = 0.0
    for i in range(len(beta)):
        value = beta[i]
        if value != 0.0:
            row = products[i]
            for j in range(len(outputs)):
                outputs[j] += value * row[j]


@kernel(reorder=True)
def _slope(error, change, target, weight, hinge, step):
    """Return the first and the second derivative of the loss in the length of a step."""
    first = 0.0
    second = 0.0
    for i in range(len(error)):
        own = error[i] - step * change[i]
        curvature = weight[i] * change[i] if not hinge or own * target[i] > 0.0 else 0.0
        first -= curvature * own
        second += curvature * change[i]
    return first, second


@kernel()
def _step_length(error, change, target, weight, hinge, linear, quadratic):
    """Return the step to the minimum along a direction, or 0 if the objective does not decrease.

    ``change`` is the change of the outputs, and ``linear`` and ``quadratic`` are the derivatives of the penalty. The slope
    is increasing and piecewise linear, so a bracketed Newton's method ends at its exact zero.
    """
    first, second = _slope(error, change, target, weight, hinge, 0.0)
    if not first + linear < 0.0:
        return 0.0
    low, high, step = 0.0, np.inf, 1.0
    for _ in range(_MAX_LINE_STEPS):
        first, second = _slope(error, change, target, weight, hinge, step)
        slope, curvature = first + linear + step * quadratic, second + quadratic
        if slope < 0.0:
            low = step
        else:
            high = step
        if slope == 0.0 or curvature <= 0.0:
            break
        updated = step - slope / curvature
        if not low < updated < high:
            updated = 0.5 * (low + high) if high < np.inf else 2.0 * step
        if abs(updated - step) <= 1e-14 * step:
            break
        step = updated
    return step


@kernel()
def _solve_small(matrix, right):
    """Solve a positive definite system of a few equations in place. Return False if it is not definite.

    Elimination without vector registers, because :func:`_factorise` would be compiled again into every caller.
    """
    n = len(right)
    for k in range(n):
        if not matrix[k, k] > 0.0:
            return False
        for i in range(k + 1, n):
            factor = matrix[i, k] / matrix[k, k]
            right[i] -= factor * right[k]
            for j in range(k + 1, n):
                matrix[i, j] -= factor * matrix[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            right[k] -= matrix[k, j] * right[j]
        right[k] /= matrix[k, k]
    return True


@kernel()
def _solve_active(products, target, weight, beside, penalty, active, known, system, beta, coef):
    """Write the optimum (beta, coef) for a set of active samples. Return False if rounding makes the system singular.

    ``system`` contains the factor for the samples ``known``, which are updated.
    """
    n_samples = len(target)
    n_beside = len(penalty)
    chosen = np.empty(n_samples, np.int64)
    n = np.int64(0)  # A literal would compile the callees twice.
    same = True
    for i in range(n_samples):
        same = same and known[i] == active[i]
        if active[i]:
            chosen[n] = i
            n += 1
    if not same:
        for i in range(n_samples):
            known[i] = active[i]
        for p in range(n):
            row, source = system[p], products[chosen[p]]
            for q in range(p, n):
                row[q] = source[chosen[q]]
            row[p] += 1.0 / weight[chosen[p]]
        if not _factorise(system, n):
            for i in range(n_samples):
                known[i] = False
            return False
    right = np.empty((n_beside + 1, n))
    for p in range(n):
        right[0, p] = target[chosen[p]]
        for k in range(n_beside):
            right[k + 1, p] = beside[k, chosen[p]]
    for k in range(n_beside + 1):
        _solve_lower(system, n, right[k])
    if n > 0:
        matrix = np.empty((n_beside, n_beside))
        for k in range(n_beside):
            for h in range(n_beside):
                matrix[k, h] = _dot(right[k + 1], right[h + 1])
            matrix[k, k] += penalty[k]
            coef[k] = _dot(right[k + 1], right[0])
        if not _solve_small(matrix, coef):
            return False
        for k in range(n_beside):
            for p in range(n):
                right[0, p] -= coef[k] * right[k + 1, p]
        _solve_upper(system, n, right[0])
    for i in range(n_samples):
        beta[i] = 0.0
    for p in range(n):
        beta[chosen[p]] = right[0, p]
    return True


@kernel()
def _newton(products, target, weight, beside, penalty, hinge, active, known, system, beta, coef):
    """Write the optimum (beta, coef) and the active samples, which contain a guess. Return the number of steps.

    The number is negative if the method ended early.
    """
    n_samples, n_beside = len(target), len(penalty)
    outputs, error, change = np.empty(n_samples), np.empty(n_samples), np.empty(n_samples)
    new_outputs, new_error = np.empty(n_samples), np.empty(n_samples)
    new_beta, new_coef = np.empty(n_samples), np.empty(n_beside)
    _move(new_coef, coef, 1.0)
    for step in range(1, _MAX_STEPS + 1):
        if not _solve_active(products, target, weight, beside, penalty, active, known, system, new_beta, new_coef):
            return -step
        _write_outputs(products, new_beta, new_outputs)
        for i in range(n_samples):
            new_error[i] = target[i] - new_outputs[i]
            for k in range(n_beside):
                new_error[i] -= new_coef[k] * beside[k, i]
        if _find_active(new_error, target, weight, hinge, active):
            _move(beta, new_beta, 1.0)
            _move(coef, new_coef, 1.0)
            return step
        length = 1.0
        if step > 1:  # The first optimum, for the guessed samples, is the initial point.
            linear, quadratic = 0.0, 0.0
            for i in range(n_samples):
                change[i] = error[i] - new_error[i]
                linear += outputs[i] * (new_beta[i] - beta[i])
                quadratic += (new_outputs[i] - outputs[i]) * (new_beta[i] - beta[i])
            for k in range(n_beside):
                linear += penalty[k] * coef[k] * (new_coef[k] - coef[k])
                quadratic += penalty[k] * (new_coef[k] - coef[k]) ** 2
            length = _step_length(error, change, target, weight, hinge, linear, quadratic)
            if length == 0.0:
                return -step
        _move(beta, new_beta, length)
        _move(coef, new_coef, length)
        _move(outputs, new_outputs, length)
        _move(error, new_error, length)
        if length != 1.0:
            _find_active(error, target, weight, hinge, active)
    return -_MAX_STEPS


@kernel()
def _count_stages(products, target, weight, beside, residual, scores):
    """Return the number of stages with smaller weights of the loss, by powers of ten.

    With large weights (or large features) the loss is nearly a constraint, and Newton's method moves between active sets
    without converging. The active set for a tenth of the weights is a good guess. ``residual`` and ``scores`` are scratch.
    """
    total, mean = 0.0, 0.0
    if len(beside):
        for i in range(len(target)):
            total += weight[i]
            mean += weight[i] * target[i]
        mean /= total
    conjugate = 0.0
    for i in range(len(target)):
        residual[i] = weight[i] * (target[i] - mean)
        conjugate += residual[i] * (0.5 * (target[i] - mean) - target[i])
    _write_outputs(products, residual, scores)
    square = _dot(residual, scores)
    if not square > abs(conjugate) > 0.0:
        return 0
    return min(_MAX_STAGES, int(np.ceil(np.log10(square / abs(conjugate)))))


@kernel()
def _make_feasible(residual, target, centred):
    """Remove the effect of rounding: dual variables of classes have the sign of the class, and equal sums if centred."""
    positive, negative = 0.0, 0.0
    for i in range(len(residual)):
        if residual[i] * target[i] < 0.0:
            residual[i] = 0.0
        positive += max(residual[i], 0.0)
        negative += max(-residual[i], 0.0)
    if centred and positive > 0.0 and negative > 0.0:
        root = np.sqrt(negative / positive)
        for i in range(len(residual)):
            residual[i] *= root if residual[i] > 0.0 else 1.0 / root


@kernel(reorder=True)
def _objectives(target, weight, beside, penalty, hinge, residual, outputs, coef):
    """Return primal and dual objective of residuals, with outputs K residual, and weights ``coef`` beside the features."""
    primal = 0.5 * _dot(residual, outputs)
    dual = primal
    for i in range(len(target)):
        error = target[i] - outputs[i]
        for k in range(len(penalty)):
            error -= coef[k] * beside[k, i]
        if not hinge or error * target[i] > 0.0:
            primal += 0.5 * weight[i] * error * error
        if residual[i] != 0.0:
            dual += residual[i] * (0.5 * residual[i] / weight[i] - target[i])
    for k in range(len(penalty)):
        if penalty[k] > 0.0:
            primal += 0.5 * penalty[k] * coef[k] ** 2
            dual += 0.5 * _dot(beside[k], residual) ** 2 / penalty[k]
    return primal, dual


@kernel()
def fit_outputs(products, targets, weight, beside, penalty, hinge, warm, active, residual, outputs, coef, objectives, steps):
    """Fit one linear model per row of ``targets``.

    Parameters
    ----------
    products : ndarray of shape (n_samples, n_samples)
        The matrix K. Samples of weight zero have no effect on the models, but get outputs.
    targets : ndarray of shape (n_outputs, n_samples)
        The targets t.
    weight : ndarray of shape (n_samples,)
        The weights c of the samples' losses.
    beside : ndarray of shape (n_beside, n_samples)
        The columns of B. For classes, an unpenalised column is the first one, and constant.
    penalty : ndarray of shape (n_beside,)
        Their penalties.
    hinge : bool
        Whether only errors of the target's sign count.
    warm : bool
        Whether ``active`` contains a guess of the active samples.
    active : ndarray of bool of shape (n_outputs, n_samples)
        Overwritten by the active samples.
    residual, outputs : ndarray of shape (n_outputs, n_samples)
        Overwritten by the dual solution, with ``w = X' residual``, and by its products with K.
    coef : ndarray of shape (n_outputs, n_beside)
        Overwritten by the weights a. The initial values only matter if no sample is ever active.
    objectives : ndarray of shape (n_outputs, 2)
        Overwritten by the primal and the dual objective. Their sum is the duality gap.
    steps : ndarray of int of shape (n_outputs,)
        Overwritten by the number of Newton steps of all stages, negative if the last stage ended before its optimum.
    """
    n_outputs, n_samples = targets.shape
    system = np.empty((n_samples, n_samples))
    known = np.zeros(n_samples, np.bool_)
    scaled_weight, scaled_penalty = np.empty(n_samples), np.empty(len(penalty))
    for c in range(n_outputs):
        target = targets[c]
        first = 0
        if not (warm and hinge):
            for i in range(n_samples):
                active[c, i] = weight[i] > 0.0
            if hinge:
                first = _count_stages(products, target, weight, beside, residual[c], outputs[c])
        steps[c] = 0
        for stage in range(first, -1, -1):
            scale = 10.0**-stage
            for i in range(n_samples):
                scaled_weight[i] = scale * weight[i]
                known[i] = known[i] and first == 0  # The factor may be that of other weights.
            for k in range(len(penalty)):
                scaled_penalty[k] = scale * penalty[k]
            n_steps = _newton(
                products, target, scaled_weight, beside, scaled_penalty, hinge,
                active[c], known, system, residual[c], coef[c],
            )  # fmt: skip
            steps[c] = abs(steps[c]) + n_steps if n_steps > 0 else n_steps - abs(steps[c])
        if hinge:
            _make_feasible(residual[c], target, len(penalty) > 0 and penalty[0] == 0.0)
        _write_outputs(products, residual[c], outputs[c])
        primal, dual = _objectives(target, weight, beside, penalty, hinge, residual[c], outputs[c], coef[c])
        objectives[c, 0] = primal
        objectives[c, 1] = dual


@kernel()
def _update_gram(design, weight, active, known, changed, gram):
    """Update the upper half of the weighted products of columns over the ``known`` samples to those that are active.

    Four samples at a time, so that the products are read and written once per four. ``changed`` is scratch.
    """
    size, n_samples = len(gram), len(weight)
    n_active, n_changed = 0, 0
    for i in range(n_samples):
        n_active += active[i]
        n_changed += active[i] != known[i]
    if n_changed > n_active:  # Recomputing is less work, and more accurate.
        for a in range(size):
            for b in range(size):
                gram[a, b] = 0.0
        for i in range(n_samples):
            known[i] = False
    n_changed = 0
    for i in range(n_samples):
        if active[i] != known[i]:
            known[i] = active[i]
            changed[n_changed] = i
            n_changed += 1
    for first in range(0, n_changed, 4):
        i, j = changed[first], changed[min(first + 1, n_changed - 1)]
        k, m = changed[min(first + 2, n_changed - 1)], changed[min(first + 3, n_changed - 1)]
        rest = n_changed - first
        p = weight[i] if active[i] else -weight[i]
        q = (weight[j] if active[j] else -weight[j]) * (rest > 1)
        r = (weight[k] if active[k] else -weight[k]) * (rest > 2)
        s = (weight[m] if active[m] else -weight[m]) * (rest > 3)
        one, two, three, four = design[i], design[j], design[k], design[m]
        for a in range(size):
            products, e, f, g, h = gram[a], p * one[a], q * two[a], r * three[a], s * four[a]
            for b in range(a, size):
                products[b] += e * one[b] + f * two[b] + g * three[b] + h * four[b]


@kernel()
def _solve_columns(design, target, weight, penalty, active, gram, system, coef):
    """Write the optimum for a set of active samples. Return False if rounding makes the system singular."""
    size = len(coef)
    for a in range(size):
        coef[a] = 0.0
        for b in range(a, size):
            system[a, b] = gram[a, b]
        system[a, a] += penalty[a]
    for i in range(len(target)):
        if active[i]:
            row, value = design[i], weight[i] * target[i]
            for a in range(size):
                coef[a] += value * row[a]
    if not _factorise(system, size):
        return False
    _solve_lower(system, size, coef)
    _solve_upper(system, size, coef)
    return True


@kernel()
def fit_columns(design, penalty, targets, weight, hinge, centred, coef, residual, objectives, steps):
    """Fit one linear model per row of ``targets`` to the columns of a design that has more samples than columns.

    The method is that of :func:`fit_outputs`: Newton's method between sets of active samples. For a given set, the weights
    are the solution of one system of the size of the columns.

    Parameters
    ----------
    design : ndarray of shape (n_samples, n_columns)
        The features, then the columns fitted beside them.
    penalty : ndarray of shape (n_columns,)
        Penalties of the squared weights: 1 for the features.
    targets, weight, hinge
        As in :func:`fit_outputs`.
    centred : bool
        Whether one of the columns is an unpenalised intercept.
    coef : ndarray of shape (n_outputs, n_columns)
        Initial weights, whose active samples are the first guess. Overwritten by the weights.
    residual : ndarray of shape (n_outputs, n_samples)
        Overwritten by feasible dual variables.
    objectives : ndarray of shape (n_outputs, 2)
        Overwritten by the primal and the dual objective. Their sum is the duality gap.
    steps : ndarray of int of shape (n_outputs,)
        Overwritten by the number of Newton steps, negative if they ended before the optimum.
    """
    (n_samples, size), n_outputs = design.shape, len(targets)
    gram, system, new = np.zeros((size, size)), np.empty((size, size)), np.empty(size)
    known, active = np.zeros(n_samples, np.bool_), np.zeros(n_samples, np.bool_)
    error, new_error, change = np.empty(n_samples), np.empty(n_samples), np.empty(n_samples)
    changed = np.empty(n_samples, np.int64)
    for c in range(n_outputs):
        target, own, dual = targets[c], coef[c], residual[c]
        for i in range(n_samples):
            error[i] = target[i] - _dot(design[i], own)
        _find_active(error, target, weight, hinge, active)
        steps[c] = -_MAX_STEPS
        for step in range(1, _MAX_STEPS + 1):
            _update_gram(design, weight, active, known, changed, gram)
            if not _solve_columns(design, target, weight, penalty, active, gram, system, new):
                steps[c] = -step
                break
            for i in range(n_samples):
                new_error[i] = target[i] - _dot(design[i], new)
            same = _find_active(new_error, target, weight, hinge, active)
            length = 1.0
            if not same and step > 1:  # The first optimum, for the guessed samples, is the initial point.
                linear, quadratic = 0.0, 0.0
                for j in range(size):
                    linear += penalty[j] * own[j] * (new[j] - own[j])
                    quadratic += penalty[j] * (new[j] - own[j]) ** 2
                for i in range(n_samples):
                    change[i] = error[i] - new_error[i]
                length = _step_length(error, change, target, weight, hinge, linear, quadratic)
                if length == 0.0:
                    steps[c] = -step
                    break
            _move(own, new, length)
            _move(error, new_error, length)
            if same:
                steps[c] = step
                break
            if length != 1.0:
                _find_active(error, target, weight, hinge, active)
        primal, dual_objective = 0.0, 0.0
        for i in range(n_samples):
            counts = weight[i] > 0.0 and (not hinge or error[i] * target[i] > 0.0)
            dual[i] = weight[i] * error[i] if counts else 0.0
            primal += 0.5 * dual[i] * error[i]
        if hinge:
            _make_feasible(dual, target, centred)
        for j in range(size):
            new[j] = 0.0
        for i in range(n_samples):
            if dual[i] != 0.0:
                dual_objective += dual[i] * (0.5 * dual[i] / weight[i] - target[i])
                row = design[i]
                for j in range(size):
                    new[j] += dual[i] * row[j]
        for j in range(size):
            primal += 0.5 * penalty[j] * own[j] ** 2
            dual_objective += 0.5 * new[j] ** 2 / penalty[j] if penalty[j] > 0.0 else 0.0
        objectives[c, 0] = primal
        objectives[c, 1] = dual_objective
