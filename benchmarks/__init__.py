"""The benchmark: every method and every rival, measured in one run that can be interrupted and continued.

``privspan bench --quick`` takes minutes and runs every method at least once; ``privspan bench`` runs the full grid.
A *suite* asks one question (`privspan.bench.suites`). It is a list of *cells*, one run of one method on one data set
each; every cell runs in a process of its own with a time limit and becomes one line of ``<suite>.csv``.
"""

from __future__ import annotations

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Run ``privspan bench`` with these arguments and return its exit code.

    Parameters
    ----------
    arguments : list of str
        As typed after ``privspan bench``; ``["--help"]`` lists them.
    """
    from privspan.bench.command import run

    return run(arguments)
