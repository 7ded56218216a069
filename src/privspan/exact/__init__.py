"""Subspaces that hold exactly: rational arithmetic, search for the densest subspace, votes and their release."""
