"""The questions that the benchmark asks, one file each."""

from benchmarks.cells import Suite
from benchmarks.suites.accuracy import ACCURACY, GROWTH, MAP
from benchmarks.suites.downstream import DOWNSTREAM
from benchmarks.suites.peers import PEERS
from benchmarks.suites.real import REAL
from benchmarks.suites.speed import SPEED
from benchmarks.suites.theorems import THEOREMS

SUITES: dict[str, Suite] = {
    suite.name: suite for suite in (ACCURACY, GROWTH, MAP, THEOREMS, REAL, PEERS, DOWNSTREAM, SPEED)
}
"""All suites by name, in the order in which they run: what needs a quiet machine comes last."""
