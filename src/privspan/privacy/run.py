"""A run: what a private call may spend, and where its random bits come from.

The account and the streams are two trees: `Run.nested` and `Run.within` take a part of the account and go on with the
same bits, `Run.on` goes on with the account and takes the bits of a child of the seed.

Six methods draw private noise, and nothing else in the package does: `gaussian`, `test`, `basis`, `select`, `decide`
and `draw`.  An audit overrides them (`privspan.audit.replay`), so it runs the code that users run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privspan._lib.errors import ParameterTypeError
from privspan.privacy import Release
from privspan.privacy.coin import Coin, basis_level, goes_on, random_rotation
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.noise import add_gaussian
from privspan.privacy.randomness import Child, RandomLike, Streams, float_generator, open_streams
from privspan.privacy.selection import ReleaseRule, permute_and_flip, releases

Array = NDArray[np.float64]


class Run:
    """An account and the streams of a seed.

    Parameters
    ----------
    account : MuLedger
    streams : Streams
    """

    def __init__(self, account: MuLedger, streams: Streams) -> None:
        self.account, self.streams = account, streams
        self.private = streams.private  # False when a seed was given

    def __reduce__(self) -> NoReturn:
        raise ParameterTypeError("A Run does not travel: what is sent to the rows must not draw noise.")

    def on(self, child: Child) -> Run:
        """Return a run with the same account and the streams of a child of the seed."""
        return Run(self.account, self.streams.child(child))

    def within(self, account: MuLedger) -> Run:
        """Return a run with the same streams and another account: a part of this one."""
        return Run(account, self.streams)

    def nested(self, name: str, share: float) -> Run:
        """Take a share of mu² for steps that keep an account of their own."""
        return self.within(self.account.nested(name, share))

    # ---- The six draws of private noise ----------------------------------------------------------------------------

    def gaussian(self, values: Array, sigma: float, grid: float | None = None) -> Array:
        """Round values to a grid and add Gaussian noise: see `privspan.privacy.noise.add_gaussian`."""
        return add_gaussian(values, sigma, self.streams.noise, grid=grid)

    def test(self, margin: int, coin: Coin) -> bool:
        """Say whether a margin is large enough to go on: see `privspan.privacy.coin.goes_on`."""
        return goes_on(margin, coin, self.streams.noise)

    def basis(self, basis: Array, shift: float, error: float, mu: float, delta: float) -> tuple[Array, float]:
        """Turn an orthonormal basis (d, k) at random and add Gaussian noise; also return the standard deviation.

        Guarantee
        ---------
        mu-GDP, up to an additive delta, for neighbours whose spans have bases at most `shift` apart, if both are
        computed up to `error`.  Proof: docs/explanation/stable-leverage.md.
        """
        rotation, rotation_error = random_rotation(basis.shape[1], delta / 2, self.streams.noise)  # on either side
        return self._turned(basis @ rotation, shift + 2 * (error + rotation_error), mu)

    def select(self, scores: Sequence[int], epsilon: float) -> int:
        """Draw the index of a nearly largest score: see `privspan.privacy.selection.permute_and_flip`."""
        return permute_and_flip(scores, epsilon, self.streams.noise)

    def decide(self, margin: int, epsilon: float, delta: float, rule: ReleaseRule = "optimal") -> bool:
        """Decide whether a candidate of that margin is released: see `privspan.privacy.selection.releases`."""
        return releases(margin, epsilon, delta, self.streams.noise, rule)

    def draw(self, law: Callable[..., Any], *arguments: Any) -> Any:
        """Draw from a law of NumPy's float64 algorithms, which is *not hardened*: for baselines only.

        The law is called with the arguments and a generator.
        """
        return law(*arguments, self._floats)

    # ---- Made of them ----------------------------------------------------------------------------------------------

    def _turned(self, basis: Array, shift: float, mu: float) -> tuple[Array, float]:
        sigma, grid = basis_level(basis.size, shift, mu)
        return self.gaussian(basis, sigma, grid), sigma

    @cached_property
    def _floats(self) -> np.random.Generator:
        return float_generator(self.streams.noise)


Learn = Callable[[Run], Release]
"""What is left of a method once everything that can be refused has been: it learns with a run."""


def open_run(account: MuLedger, rng: RandomLike) -> Run:
    """Return a run; nothing is charged, which `privspan.privacy.call.Call.begin` does before."""
    streams, make = open_streams(rng), getattr(rng, "run", None)
    run: Run = Run(account, streams) if make is None else make(account, streams)
    if run.private and rng is not None:
        raise ParameterTypeError("{rng} must make a run of the streams of its seed, which is not private.")
    return run
