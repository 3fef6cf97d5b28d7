"""Plain compiled functions over columns, dense and CSC twins side by side."""
