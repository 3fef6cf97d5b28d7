"""Everything that is wrong with data or parameters, for every estimator: a right result or one clear ``ValueError``."""
