"""Measures of correlation between features, and the distribution of all pairs' correlations."""
