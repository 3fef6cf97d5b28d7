"""Group discovery: support features and their affiliated features (GDM)."""
