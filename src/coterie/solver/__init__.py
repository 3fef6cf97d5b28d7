"""Convex problems with certificates: losses, designs, and the solvers of the master problem."""
