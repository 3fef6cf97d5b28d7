"""Readers of data files, one file a format, and what turns blocks of samples into features."""
