"""Runs for tests: an account and seeded streams, or the transcript of a replay."""

from privspan.privacy import Budget
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.run import Run, open_run


def seeded(rng=0, epsilon=1.0, delta=1e-6, mu=None, **account) -> Run:
    """Return a run of a seed, or of a transcript, with an account of its own."""
    return open_run(MuLedger(Budget(epsilon, delta), mu, **account), rng)
