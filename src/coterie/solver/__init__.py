"""Convex problems with certificates: losses, designs and solvers of the master problem."""
