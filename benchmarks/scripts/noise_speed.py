"""How long do a million exact Gaussian draws take?

Compares `privspan.privacy.noise.rounded_normal` (exact law, secure bits) with NumPy's `standard_normal` (neither) and
with OpenDP's discrete Gaussian (exact law, secure bits), in one process and on one core.
"""

import argparse
import math
import time
from collections.abc import Callable

import numpy as np

from privspan.privacy.noise import rounded_normal
from privspan.privacy.randomness import BitSource, open_streams

DRAWS = 10**6


def best_seconds(draw: Callable[[], object], repeats: int) -> float:
    """Return the shortest of several runs, after one that warms caches and tables."""
    draw()
    seconds = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        draw()
        seconds = min(seconds, time.perf_counter() - start)
    return seconds


def opendp_seconds(scale: float, draws: int, repeats: int) -> float | None:
    """Return OpenDP's time for a million draws, scaled up from fewer; None where it is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    mechanism = dp.m.make_gaussian(*space, scale=scale)
    zeros = [0] * draws
    return best_seconds(lambda: mechanism(zeros), repeats) * DRAWS / draws


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=2.0**20.5, help="standard deviation in grid steps")
    parser.add_argument("--repeats", type=int, default=5, help="runs of which the best counts")
    parser.add_argument("--opendp-draws", type=int, default=10_000, help="draws by OpenDP, scaled to a million")
    parser.add_argument("--quick", action="store_true", help="one run instead of the best of several")
    options = parser.parse_args()
    if options.quick:
        options.repeats = 1

    secure, seeded, generator = BitSource(), open_streams(0).noise, np.random.default_rng(0)
    samplers: dict[str, Callable[[], object]] = {
        "privspan, operating-system bits": lambda: rounded_normal(DRAWS, options.scale, secure),
        "privspan, seeded bits": lambda: rounded_normal(DRAWS, options.scale, seeded),
        "os.urandom alone, 16 bytes a draw": lambda: secure.bytes(16 * DRAWS),
        "numpy standard_normal": lambda: generator.standard_normal(DRAWS),
    }
    seconds = {name: best_seconds(draw, options.repeats) for name, draw in samplers.items()}
    opendp = opendp_seconds(options.scale, options.opendp_draws, options.repeats)
    if opendp is not None:
        seconds["OpenDP discrete Gaussian"] = opendp

    ours = seconds["privspan, operating-system bits"]
    print(f"One million draws at scale {options.scale:.6g}, one core, best of {options.repeats}")
    print(f"{'sampler':36}{'seconds':>10}{'relative to privspan':>24}")
    for name, value in seconds.items():
        print(f"{name:36}{value:>10.4f}{value / ours:>24.3g}")


if __name__ == "__main__":
    main()
