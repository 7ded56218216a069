"""Where random bits come from: secure by default, seeded only for tests and simulation.

A `BitSource` hands out exactly uniform, independent bits.  `open_streams` opens the three streams that every
algorithm uses and keeps apart:

* *noise*: the private noise itself;
* *public*: reference points and shuffles, for whose every value privacy holds;
* *charged*: primes, hash keys and search permutations, whose failure probability is charged to delta.

Without a seed all three rest on the operating system's entropy.  With a seed the run is repeatable and
therefore not private.  NumPy's global random state is never read and never changed.  The page
``docs/explanation/randomness.md`` tells what each stream may be used for.
"""

from __future__ import annotations

import builtins
import operator
import os
import secrets
from enum import Enum
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privspan._lib.errors import ParameterError, ParameterTypeError
from privspan.rows.dealing import SPAWN_DOMAIN


class RunMaker(Protocol):
    """Stands for a seed and makes the `privspan.privacy.run.Run` of a call itself, as a replay of an audit does."""

    @property
    def seed(self) -> int:
        """Of the streams."""

    def run(self, account: Any, streams: Any) -> Any:
        """Return the Run."""


RandomLike = None | int | np.random.SeedSequence | np.random.Generator | np.random.RandomState | RunMaker

_MAX_ROUNDS = 1000  # of `BitSource.below`, each with chance 1/2 or more


class BitSource:
    """One stream of independent, exactly uniform bits.

    Parameters
    ----------
    generator : numpy.random.BitGenerator or None
        None reads the operating system's entropy.  A bit generator makes a repeatable stream that is not
        private; it must yield 64-bit words, as all of NumPy's but MT19937 do.

    Notes
    -----
    Secure bits are read when they are asked for and never kept.  A buffer would be copied by ``fork``, by
    pickling or by threads, and two releases with equal noise reveal the difference of their data.
    """

    def __init__(self, generator: np.random.BitGenerator | None = None) -> None:
        if isinstance(generator, np.random.MT19937):
            raise ParameterTypeError("{generator} must yield 64-bit words; got MT19937.")
        self._generator = generator

    @property
    def private(self) -> bool:
        """Whether the bits come from the operating system: True if and only if they do."""
        return self._generator is None

    def __repr__(self) -> str:
        """Name the origin of the bits, not their state."""
        return f"BitSource({'operating-system entropy' if self.private else 'seeded, not private'})"

    def bytes(self, count: int) -> builtins.bytes:
        """Return `count` uniform bytes."""
        if self._generator is None:
            return os.urandom(count)
        words: NDArray[np.uint64] = self._generator.random_raw(-(-count // 8))
        return words.astype("<u8").tobytes()[:count]

    def uint64(self, size: int | tuple[int, ...]) -> NDArray[np.uint64]:
        """Return an array of independent uniform 64-bit words of shape `size`."""
        shape = size if isinstance(size, tuple) else (size,)
        count = int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(self.bytes(8 * count), dtype="<u8").astype(np.uint64).reshape(shape)

    def below(self, bound: int) -> int:
        """Return an exactly uniform integer in ``[0, bound)``.

        Too few bits for `bound` would be uneven, so a value that is too large is thrown away and drawn again.
        """
        bound = operator.index(bound)
        if bound < 1:
            raise ParameterError("{bound} must be at least 1; got {got!r}.", got=bound)
        width = (bound - 1).bit_length()
        for _ in range(_MAX_ROUNDS):
            candidate = self._integer(width)
            if candidate < bound:
                return candidate
        raise RuntimeError("The random source is broken: 1000 rounds of chance at least 1/2 failed.")

    def bernoulli(self, numerator: int, bits: int) -> bool:
        """Return True with probability exactly ``numerator / 2**bits``, from `bits` fresh bits.

        The message for a numerator out of range does not quote it: it may depend on the data.
        """
        numerator, bits = operator.index(numerator), operator.index(bits)
        if bits < 0:
            raise ParameterError("{bits} must be at least 0; got {got!r}.", got=bits)
        if not 0 <= numerator <= 1 << bits:
            raise ParameterError("{numerator} must be between 0 and 2**bits.")
        return self._integer(bits) < numerator

    def _integer(self, width: int) -> int:
        """Return a uniform integer of `width` bits."""
        count = -(-width // 8)
        return int.from_bytes(self.bytes(count), "little") >> (8 * count - width)


class Child(Enum):
    """The children of a seed, each with streams of its own: what one step draws leaves the others as they are.

    The value is what is appended to the key of the seed.
    """

    PAIRING = (0,)  # of a private PCA: the public order that makes pairs of rows
    DIMENSION = (1,)
    SUBSPACE = (2,)
    VARIANCES = (3,)
    MEAN = (4,)
    SCALES = (5,)
    NEAR = (6,)
    GAPS = (7,)
    LOOK = (SPAWN_DOMAIN, 3)  # of the one algorithm: its steps on the rows that it looks at
    ORDER = (SPAWN_DOMAIN, 4)  # of a table of persons: their secret order


class Streams:
    """The three streams of one private call, or of a child of its seed; each is opened when it is first asked for.

    Parameters
    ----------
    seed : numpy.random.SeedSequence or None
        None opens secure streams.  With a seed they are not `private`, and a release made with them says so.
    """

    def __init__(self, seed: np.random.SeedSequence | None = None) -> None:
        self._seed, self.private = seed, seed is None
        self._opened: set[tuple[int, ...]] = set()  # keys whose noise was opened, shared by a seed and its children

    @cached_property
    def noise(self) -> BitSource:
        """The private noise.  Whoever knows these bits knows the data behind the release."""
        if self._seed is None:
            return BitSource()
        if self._seed.spawn_key in self._opened:  # equal noise twice would give the data away
            raise RuntimeError("The noise of a child of a seed was opened twice.")
        self._opened.add(self._seed.spawn_key)
        return BitSource(np.random.Philox(_child(self._seed, (SPAWN_DOMAIN, 0))))

    @cached_property
    def public(self) -> np.random.Generator:
        """Reference points and shuffles.  Privacy holds for every value, so they may even be published."""
        if self._seed is None:
            return np.random.default_rng(np.random.SeedSequence(secrets.randbits(256)))
        return np.random.Generator(np.random.PCG64DXSM(_child(self._seed, (SPAWN_DOMAIN, 1))))

    @cached_property
    def charged(self) -> BitSource:
        """Primes, hash keys and search permutations.

        They must be fresh and unknown to whoever made the data: the probability that they fail is charged to delta.
        """
        return BitSource(None if self._seed is None else np.random.Philox(_child(self._seed, (SPAWN_DOMAIN, 2))))

    def child(self, child: Child) -> Streams:
        """Return the streams of a child, from their beginning."""
        streams = Streams(None if self._seed is None else _child(self._seed, child.value))
        streams._opened = self._opened
        return streams


def open_streams(rng: RandomLike = None) -> Streams:
    """Return the noise, public and charged streams of a seed, none of which has been drawn from yet.

    Parameters
    ----------
    rng : None, int, SeedSequence, Generator or RandomState
        None, the default, opens secure streams.  Anything else is a seed: the three streams are then
        repeatable, independent of each other and not private.  An int or a SeedSequence gives the same
        streams each time; a Generator or RandomState is advanced, so that the next call gives other streams.

    Returns
    -------
    Streams
        ``private`` is True if and only if `rng` is None.

    Raises
    ------
    TypeError
        If `rng` is of another kind, among them booleans and the module ``numpy.random``.
    ValueError
        If `rng` is a negative integer, or NumPy's global random state.

    Examples
    --------
    >>> open_streams().private
    True
    >>> open_streams(7).noise.below(1000) == open_streams(7).noise.below(1000)
    True
    """
    return Streams(None if rng is None else _seed_sequence(rng))


def secret_order(n: int, bits: BitSource) -> NDArray[np.intp]:
    """Draw an exactly uniform order of n: that of random keys, drawn again should two of them be equal."""
    while True:
        keys = bits.uint64(n)
        order = np.argsort(keys, kind="stable")
        if (np.diff(keys[order]) != 0).all():
            return order


def float_generator(bits: BitSource) -> np.random.Generator:
    """Return a NumPy generator seeded with 256 bits of a stream, for samplers that are not hardened."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(int.from_bytes(bits.bytes(32), "little"))))


def _child(seed: np.random.SeedSequence, key: tuple[int, ...]) -> np.random.SeedSequence:
    """Return a child of a seed; not by `spawn`, which would change the sequence of the caller."""
    # With `SPAWN_DOMAIN` in its key it is none of `seed.spawn()`, nor `default_rng(seed)`: these may make the data.
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key), pool_size=seed.pool_size)


def _seed_sequence(rng: object) -> np.random.SeedSequence:
    """Turn any accepted seed into a SeedSequence; a generator is advanced by 256 bits."""
    if isinstance(rng, np.random.SeedSequence):
        return rng
    if isinstance(rng, np.random.Generator):
        return np.random.SeedSequence(rng.integers(0, 2**32, size=8, dtype=np.uint32).tolist())
    if isinstance(rng, np.random.RandomState):
        if rng is getattr(np.random.get_state, "__self__", None):  # the state behind numpy.random's functions
            raise ParameterError("{rng} must not be NumPy's global random state; pass None or a seed.")
        return np.random.SeedSequence(rng.randint(0, 2**32, size=8, dtype=np.uint32).tolist())
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool):
        if rng < 0:
            raise ParameterError("{rng} must be at least 0 when it is an integer; got {got!r}.", got=rng)
        return np.random.SeedSequence(int(rng))
    if callable(getattr(rng, "run", None)) and isinstance(seed := getattr(rng, "seed", None), int):
        return np.random.SeedSequence(seed)
    what = "None, an integer, a SeedSequence, a Generator or a RandomState"
    raise ParameterTypeError("{rng} must be {what}; got {kind}.", what=what, kind=type(rng).__name__)
