"""Validation: folds, held-out scores, choice of settings, nested scores, calibration."""
