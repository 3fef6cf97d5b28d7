"""Tests of the selector of GRM."""

from functools import partial

from coterie import GlobalRedundancySelector

# The problem of the paper, which is not the default.
by_weights = partial(GlobalRedundancySelector, solution="weights")
