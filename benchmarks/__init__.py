"""The benchmark: every method and every rival, measured in one run that can be interrupted and continued.

``python -m benchmarks --quick`` takes minutes and runs every method at least once; ``python -m benchmarks`` runs the
full grid; ``privspan bench`` is the same command. A *suite* asks one question (`benchmarks.suites`). It is a list of
*cells*, one run of one method on one data set each; every cell runs in a process of its own with a time limit and
becomes one line of ``<suite>.csv``.

It comes with the source of privspan and is not installed with it.
"""
