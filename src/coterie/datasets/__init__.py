"""Generators of data with known groups of features."""

from coterie.datasets.big import make_big_dimensional
from coterie.datasets.synthetic import make_block_gaussian, make_feature_groups, make_support_affiliated

__all__ = ["make_big_dimensional", "make_block_gaussian", "make_feature_groups", "make_support_affiliated"]
