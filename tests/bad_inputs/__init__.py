"""Wrong data and parameters for every estimator: a correct result or one clear ``ValueError``."""
