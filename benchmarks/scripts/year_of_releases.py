"""What a year of releases costs: fits added up plainly, and composed in mu by the ledger.

python benchmarks/scripts/year_of_releases.py
"""

import math
import tempfile

from privspan.ledger import Ledger, OverspendError
from privspan.privacy import mu_from_budget

DELTA = 1e-6


def cost_of(fits: int, aside: float) -> tuple[float, float]:
    """Epsilon at 1e-6 and at 1e-5 of so many fits at (1, 1e-6), from a ledger file without a limit."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(f"{folder}/budget.json")
        mu = mu_from_budget(1.0, DELTA - aside)
        for _ in range(fits):
            ledger.begin("survey", 1.0, DELTA, mu=mu, aside=aside)
        spent = ledger.account("survey").spent
        return spent.epsilon_at(1e-6), spent.epsilon_at(1e-5)


def allowed(limit: float, epsilon: float, plain: bool) -> int:
    """How many fits at (epsilon, 1e-6) a limit of (limit, 1e-5) allows."""
    with tempfile.TemporaryDirectory() as folder:
        ledger, count = Ledger(f"{folder}/budget.json"), 0
        mu = mu_from_budget(epsilon, DELTA)
        while True:
            try:
                ledger.begin("s", epsilon, DELTA, mu=mu, limit_epsilon=limit, limit_delta="1e-5", plain=plain)
            except OverspendError:
                return count
            count += 1


def up(value: float) -> float:
    """Round up to two digits."""
    return math.ceil(100 * value - 1e-6) / 100


def main() -> None:
    """Print the tables of docs/howto/a-year-of-releases.md."""
    print("fits at (1, 1e-6)   plain   epsilon at 1e-6   at 1e-5   at 1e-5, each sets a twentieth of delta aside")
    for fits in (1, 4, 10, 12, 52):
        (six, five), (_, aside) = cost_of(fits, 0.0), cost_of(fits, DELTA / 20)
        print(f"{fits:17}   {fits:5}   {up(six):15.2f}   {up(five):7.2f}   {up(aside):.2f}")
    print("\nlimit (epsilon, 1e-5)   fits at   plain   composed")
    for limit in (1.0, 3.0):
        for epsilon in (1.0, 0.5, 0.25):
            print(
                f"{limit:21}   {epsilon:7}   {allowed(limit, epsilon, True):5}   {allowed(limit, epsilon, False):8}"
            )
    print("\nwithin (1, 1e-6) a year   mu each, composed   mu each, plain   noise saved")
    for fits in (12, 52):
        composed, plain = mu_from_budget(1.0, DELTA) / fits**0.5, mu_from_budget(1.0 / fits, DELTA / fits)
        print(f"{fits:23}   {composed:17.4f}   {plain:14.4f}   {composed / plain:.1f} times")


if __name__ == "__main__":
    main()
