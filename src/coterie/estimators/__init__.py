"""Group-discovery estimators: thin scikit-learn adapters of the search."""
