"""The questions that the benchmark asks, one file each."""

from privspan.bench.cells import Suite
from privspan.bench.suites.accuracy import ACCURACY, GROWTH, MAP
from privspan.bench.suites.downstream import DOWNSTREAM
from privspan.bench.suites.peers import PEERS
from privspan.bench.suites.real import REAL
from privspan.bench.suites.speed import SPEED
from privspan.bench.suites.theorems import THEOREMS

SUITES: dict[str, Suite] = {
    suite.name: suite for suite in (ACCURACY, GROWTH, MAP, THEOREMS, REAL, PEERS, DOWNSTREAM, SPEED)
}
"""All suites by name, in the order in which they run: what needs a quiet machine comes last."""
