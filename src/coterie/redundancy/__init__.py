"""Global redundancy minimisation (GRM)."""
