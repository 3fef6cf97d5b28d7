"""Naive implementations of the filter scores by their definitions."""

import numpy as np


def variance(X, y=None):
    return np.array([np.mean((f - f.mean()) ** 2) for f in X.T])


def lgd(X, y=None, k=5):
    scores = []
    for f in X.T:
        local = 0.0
        for value in f:
            near = f[np.argsort(np.abs(f - value), kind="stable")[:k]]
            local += ((near - near.mean()) ** 2).sum()
        even = np.linspace(0.0, np.ptp(f), len(f))[:k]
        local += 0.1 * len(f) * ((even - even.mean()) ** 2).sum()
        scores.append(((f - f.mean()) ** 2).sum() / local)
    return np.array(scores)


def lgd_among_samples(X, k):
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    local = 0.0
    for i in range(len(X)):
        others = [h for h in np.argsort(squared[i], kind="stable") if h != i]
        near = X[[i, *others[: k - 1]]]
        local = local + ((near - near.mean(axis=0)) ** 2).sum(axis=0)
    whole = ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    return whole / (local + 0.01 * whole)


def fisher(X, y):
    between = within = 0.0
    for c in np.unique(y):
        mine = X[y == c]
        between = between + len(mine) * (mine.mean(axis=0) - X.mean(axis=0)) ** 2
        within = within + len(mine) * mine.var(axis=0)
    return between / within


def full_graph(X, sigma):
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    W = np.exp(-squared / (2 * sigma**2))
    np.fill_diagonal(W, 0.0)
    return W


def graph(X, k=5):
    n = len(X)
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    near = [[h for h in np.argsort(squared[i], kind="stable") if h != i][:k] for i in range(n)]
    width = np.mean([squared[i, h] for i in range(n) for h in near[i]])
    W = np.zeros((n, n))
    for i in range(n):
        for h in near[i]:
            W[i, h] = W[h, i] = np.exp(-squared[i, h] / width)
    return W


def laplacian(X, y=None, k=5, W=None):
    W = graph(X, k) if W is None else W
    D = np.diag(W.sum(axis=1))
    one = np.ones(len(X))
    scores = []
    for f in X.T:
        centred = f - (f @ D @ one) / (one @ D @ one)
        scores.append(1 - (centred @ (D - W) @ centred) / (centred @ D @ centred))
    return np.array(scores)


def relieff(X, y, k=10, probes=None):
    n = len(X)
    scaled = X / np.where(np.ptp(X, axis=0) > 0, np.ptp(X, axis=0), 1.0)
    share = {c: np.mean(y == c) for c in np.unique(y)}
    probes = range(n) if probes is None else probes
    scores = np.zeros(X.shape[1])
    for i in probes:
        distance = np.abs(scaled - scaled[i]).sum(axis=1)
        for c, part in share.items():
            near = [h for h in np.argsort(distance, kind="stable") if y[h] == c and h != i][:k]
            if near:
                mean = np.abs(scaled[near] - scaled[i]).mean(axis=0)
                scores += -mean if c == y[i] else part / (1 - share[y[i]]) * mean
    return scores / len(probes)


def entropy(labels):
    share = np.unique(labels, return_counts=True)[1] / len(labels)
    return -(share * np.log(share)).sum()


def information_gain(X, y, n_bins=10):
    scores = []
    for f in X.T:
        bins = np.minimum(((f - f.min()) / np.ptp(f) * n_bins).astype(int), n_bins - 1)
        left = sum(np.mean(bins == b) * entropy(y[bins == b]) for b in np.unique(bins))
        scores.append(entropy(y) - left)
    return np.array(scores)
