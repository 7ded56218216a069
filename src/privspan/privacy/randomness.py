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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privspan._lib.entry import about_to_look

RandomLike = None | int | np.random.SeedSequence | np.random.Generator | np.random.RandomState

# Keeps our streams apart from `seed.spawn()` and from `default_rng(seed)`, which a user may use for the data.
_SPAWN_DOMAIN = 0x70726976  # "priv"
_COURSE, _ORDER = 3, 4  # children of a seed beside the three streams: of a course's own steps, of an order of persons

# Each round of `BitSource.below` succeeds with probability at least 1/2.
_MAX_ROUNDS = 1000


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
            raise TypeError("`generator` must yield 64-bit words; got MT19937.")
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
            raise ValueError(f"`bound` must be at least 1; got {bound!r}.")
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
            raise ValueError(f"`bits` must be at least 0; got {bits!r}.")
        if not 0 <= numerator <= 1 << bits:
            raise ValueError("`numerator` must be between 0 and 2**bits.")
        return self._integer(bits) < numerator

    def _integer(self, width: int) -> int:
        """Return a uniform integer of `width` bits."""
        count = -(-width // 8)
        return int.from_bytes(self.bytes(count), "little") >> (8 * count - width)


@dataclass(frozen=True)
class Streams:
    """The three streams of one private call.

    Attributes
    ----------
    noise : BitSource
        The private noise.  Whoever knows these bits knows the data behind the release.
    public : numpy.random.Generator
        Reference points and shuffles.  Privacy holds for every value, so they may even be published.
    charged : BitSource
        Primes, hash keys, search permutations.  They must be fresh and unknown to whoever made the data,
        because the probability that they fail is charged to delta.
    private : bool
        False when a seed was given; a release made with such streams says so.
    """

    noise: BitSource
    public: np.random.Generator
    charged: BitSource
    private: bool


def open_streams(rng: RandomLike = None) -> Streams:
    """Open the noise, public and charged streams.

    To be called once everything that can be refused has been, and before the first look at a value: a call that was
    given a ledger is charged here.

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
    root = None if rng is None else _seed_sequence(rng)
    about_to_look()  # what is private needs randomness, so the budget is charged before there is any
    return _opened(root)


def order_bits(rng: RandomLike) -> BitSource:
    """Return bits for a secret order of persons, apart from those of `open_streams`.

    An order releases nothing, and is drawn before the checks of a call that counts persons: nothing is charged yet.
    """
    apart = set_apart(rng, _ORDER)
    return _opened(None if apart is None else _seed_sequence(apart)).noise


def _opened(root: np.random.SeedSequence | None) -> Streams:
    if root is None:
        public = np.random.default_rng(np.random.SeedSequence(secrets.randbits(256)))
        return Streams(noise=BitSource(), public=public, charged=BitSource(), private=True)
    keys = [(*root.spawn_key, _SPAWN_DOMAIN, index) for index in range(3)]
    seeds = [np.random.SeedSequence(root.entropy, spawn_key=key, pool_size=root.pool_size) for key in keys]
    noise, charged = (BitSource(np.random.Philox(seed)) for seed in seeds[::2])
    return Streams(noise, np.random.Generator(np.random.PCG64DXSM(seeds[1])), charged, private=False)


def set_apart(rng: RandomLike, number: int = _COURSE) -> RandomLike:
    """Return a seed for some steps of a call, whose draws then leave those of the other steps as they are.

    None stays None, and a Generator or RandomState is advanced by each use; from a fixed seed one child is derived,
    for each number another one.
    """
    if rng is None or isinstance(rng, np.random.Generator | np.random.RandomState):
        return rng
    root = _seed_sequence(rng)
    key = (*root.spawn_key, _SPAWN_DOMAIN, number)  # 0 to 2 are those of `open_streams`
    return np.random.SeedSequence(root.entropy, spawn_key=key, pool_size=root.pool_size)


def _seed_sequence(rng: object) -> np.random.SeedSequence:
    """Turn any accepted seed into a SeedSequence; a generator is advanced by 256 bits."""
    if isinstance(rng, np.random.SeedSequence):
        return rng
    if isinstance(rng, np.random.Generator):
        return np.random.SeedSequence(rng.integers(0, 2**32, size=8, dtype=np.uint32).tolist())
    if isinstance(rng, np.random.RandomState):
        if rng is getattr(np.random.get_state, "__self__", None):  # the state behind numpy.random's functions
            raise ValueError("`rng` must not be NumPy's global random state; pass None or a seed.")
        return np.random.SeedSequence(rng.randint(0, 2**32, size=8, dtype=np.uint32).tolist())
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool):
        if rng < 0:
            raise ValueError(f"`rng` must be at least 0 when it is an integer; got {rng!r}.")
        return np.random.SeedSequence(int(rng))
    what = "None, an integer, a SeedSequence, a Generator or a RandomState"
    raise TypeError(f"`rng` must be {what}; got {type(rng).__name__}.")
