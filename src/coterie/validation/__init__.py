"""Validation: folds, held-out scores, the choice of settings, nested scores, calibration."""
