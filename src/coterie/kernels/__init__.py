"""Compiled functions over columns, in dense and CSC versions."""
