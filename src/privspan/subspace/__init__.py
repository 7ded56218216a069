"""Subspaces as values: orthonormal bases, exact relations between columns, and their files."""

from privspan.subspace.subspace import Subspace

__all__ = ["Subspace"]
