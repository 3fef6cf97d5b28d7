"""Selectors that hang, fail, exit or use too much memory."""

import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
from sklearn.base import BaseEstimator


class Selector(BaseEstimator):
    """Select the features of largest variance."""

    def __init__(self, n_features_to_select=2):
        self.n_features_to_select = n_features_to_select

    def fit(self, X, y):
        self.fail(X, y)
        scores = np.asarray(X).var(axis=0)
        self.mask_ = np.isin(np.arange(X.shape[1]), np.argsort(-scores, kind="stable")[: self.n_features_to_select])
        return self

    def fail(self, X, y):
        pass

    def get_support(self):
        return self.mask_


class Raises(Selector):
    def fail(self, X, y):
        raise RuntimeError("no\nluck")


class Hangs(Selector):
    """Hang at some numbers of features, with a child process that would outlive it."""

    def __init__(self, n_features_to_select=2, at=(2, 3), pid_file=None):
        super().__init__(n_features_to_select)
        self.at = at
        self.pid_file = pid_file

    def fail(self, X, y):
        if self.n_features_to_select in self.at:
            if self.pid_file is not None:
                child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
                with open(self.pid_file, "w") as file:
                    file.write(f"{os.getpid()} {child.pid}")
            time.sleep(300)


class HangsOnFewSamples(Selector):
    def fail(self, X, y):
        if len(y) < 40:
            time.sleep(300)


class UsesTooMuchMemory(Selector):
    def fail(self, X, y):
        blocks = []
        while len(blocks) < 30:  # the memory limit is reached earlier
            blocks.append(np.ones(8_000_000))
            time.sleep(0.3 if len(blocks) > 8 else 0.0)
        raise RuntimeError("the memory limit was not enforced")


class HasNoMemory(Selector):
    def fail(self, X, y):
        raise MemoryError("Unable to allocate 1 TiB")


class KillsItself(Selector):
    def fail(self, X, y):
        os.kill(os.getpid(), signal.SIGKILL)


class Exits(Selector):
    def fail(self, X, y):
        print("goodbye")
        sys.stdout.flush()
        os._exit(7)


class CallsExit(Selector):
    def fail(self, X, y):
        sys.exit(3)


class Warns(Selector):
    def fail(self, X, y):
        warnings.warn("something is\nodd", stacklevel=1)


class SelectsNothing(Selector):
    def get_support(self):
        return np.zeros(len(self.mask_), dtype=bool)
