"""What keeps replays of stable leverage below nine tenths of their claims?

For every replay that uses up less: how far its pair moves the noisy basis, over the bound that the noise is for; what
it would use up if the basis moved by the whole bound, with the coin's own law; and with the coin as the Gaussian step
that the proof counts it as.  The figures behind the reasons of docs/howto/audit.md, for
the first of three transcripts; parts of `boosted_subspace` are runs of `approximate_subspace (stable)`.

    python benchmarks/scripts/replay_room.py [--quick]
"""

from __future__ import annotations

import argparse
import math
import warnings
from dataclasses import replace

from privspan.audit import replays
from privspan.audit.registry import registered
from privspan.audit.replay import Path, Transcript, replayed_epsilon

NAMES = (
    "stable_subspace",
    "stable_subspace (slope)",
    "approximate_subspace (stable)",
    "approximate_subspace (k chosen)",
)


def shares(name: str) -> tuple[float, float, float, float]:
    """Return what is used up, the move over its bound, and what would be used up in the two other cases."""
    case = registered("replayed")[name]
    table, neighbour = next(iter(case.pairs.values()))
    paths = Transcript(answer=True).paths(lambda table, rng: case.run(table.copy(), rng), table, neighbour)
    bound = max(part.mu for part in paths[0].results[0].cost.parts if part.name.endswith("noise"))
    moves = [math.sqrt(max(after_yes(path), 0.0)) / bound for path in paths if path.coin is not None]
    whole = [full(path, bound) for path in paths]
    gaussian = [replace(path, coin=None) for path in whole]
    used = (replayed_epsilon(found, case.delta) / case.epsilon for found in (paths, whole, gaussian))
    first, *others = used
    return (first, max(moves), *others)


def after_yes(path: Path) -> float:
    """Return what the basis costs: all that follows the coin."""
    return path.spent - path.coin.before - path.coin.cost


def full(path: Path, bound: float) -> Path:
    return path if path.coin is None else replace(path, spent=path.spent - after_yes(path) + bound**2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the first one only")
    names = NAMES[:1] if parser.parse_args().quick else NAMES
    warnings.simplefilter("ignore")
    assert replays  # which registers them
    print("| replay | used up | move of the basis over its bound | if that were whole | and the coin Gaussian |")
    print(5 * "|---" + "|")
    for name in names:
        print(f"| {name} |" + "|".join(f" {share:.1%} " for share in shares(name)) + "|", flush=True)


if __name__ == "__main__":
    main()
