"""Readers of data files, one module per format, and the conversion of blocks of samples to features."""
