"""Bits are uniform, seeds repeat, secure streams do not, and NumPy's global state is left alone."""

import copy
import pickle

import numpy as np
import pytest
from scipy.stats import chisquare

from privspan.privacy.randomness import BitSource, Child, open_streams


def draws(streams):
    """Return a few words of each of the three streams."""
    return (
        streams.noise.uint64(4).tolist(),
        streams.public.integers(0, 2**63, size=4).tolist(),
        streams.charged.uint64(4).tolist(),
    )


def test_default_is_secure_and_never_repeats():
    """No seed means operating-system entropy in all three streams."""
    first, second = open_streams(), open_streams(None)
    assert first.private
    assert first.noise.private
    assert first.charged.private
    words = [tuple(part) for part in (*draws(first), *draws(second))]
    assert len(set(words)) == 6


@pytest.mark.parametrize("seed", [0, 12345, np.int64(7), np.random.SeedSequence(9), 2**200])
def test_a_value_seed_repeats_and_is_not_private(seed):
    """An int or a SeedSequence gives the same streams each time."""
    first, second = open_streams(seed), open_streams(seed)
    assert not first.private
    assert not first.noise.private
    assert not first.charged.private
    assert draws(first) == draws(second)


def test_seed_sequence_is_not_changed_and_not_shared_with_its_children():
    """Opening streams must neither advance the user's SeedSequence nor collide with `spawn`."""
    root = np.random.SeedSequence(3)
    ours = draws(open_streams(root))
    assert root.n_children_spawned == 0
    children = [np.random.Philox(child).random_raw(4).tolist() for child in root.spawn(3)]
    assert ours[0] not in children
    assert ours[2] not in children
    assert draws(open_streams(root)) == ours
    assert draws(open_streams(root.spawn(1)[0])) != ours


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_a_generator_is_advanced(make):
    """The same generator twice gives different streams; an equal generator gives equal ones."""
    rng, twin = make(5), make(5)
    first, second = draws(open_streams(rng)), draws(open_streams(rng))
    assert first != second
    assert draws(open_streams(twin)) == first
    assert not open_streams(twin).private


def test_seeded_streams_are_known_words():
    """The words of a seed are part of the contract: they must not change with platform or version."""
    streams = open_streams(1)
    assert streams.noise.uint64(2).tolist() == [9419952496944081218, 10921675652708954173]
    assert streams.charged.uint64(2).tolist() == [10715792782214035593, 9033389321566850928]


def test_seeded_streams_are_unrelated():
    """Streams of one seed, of the next seed, and of `default_rng` of that seed agree in half their bits."""
    first, second = open_streams(1), open_streams(2)
    words = [
        first.noise.uint64(4000),
        first.charged.uint64(4000),
        first.public.integers(0, 2**64, size=4000, dtype=np.uint64),
        second.noise.uint64(4000),
        np.random.default_rng(1).integers(0, 2**64, size=4000, dtype=np.uint64),
    ]
    for index, left in enumerate(words):
        for right in words[:index]:
            ones = int(np.bitwise_count(left ^ right).sum())
            assert abs(ones - 128_000) < 5 * np.sqrt(256_000 / 4)


@pytest.mark.parametrize("bad", [True, 1.5, "seed", [1, 2], np.zeros(3), np.random, object(), np.random.PCG64(1)])
def test_nonsense_is_refused(bad):
    """Anything but the five documented kinds is a TypeError."""
    with pytest.raises(TypeError, match="`rng` must be"):
        open_streams(bad)


def test_negative_seed_and_global_state_are_refused():
    """A negative integer is no seed, and NumPy's global state is nobody's private stream."""
    with pytest.raises(ValueError, match="at least 0"):
        open_streams(-1)
    with pytest.raises(ValueError, match="global"):
        open_streams(np.random.mtrand._rand)


def test_numpy_global_state_is_neither_changed_nor_read():
    """Seeding NumPy must not make us repeat, and using us must not advance NumPy."""
    saved = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(0)  # noqa: NPY002
        before = np.random.get_state()  # noqa: NPY002
        first = draws(open_streams())
        draws(open_streams(1))
        after = np.random.get_state()  # noqa: NPY002
        assert np.array_equal(before[1], after[1])
        assert before[2:] == after[2:]
        np.random.seed(0)  # noqa: NPY002
        assert draws(open_streams()) != first
    finally:
        np.random.set_state(saved)  # noqa: NPY002


@pytest.mark.parametrize("source", [BitSource(), open_streams(3).noise], ids=["secure", "seeded"])
def test_bits_are_balanced(source):
    """Each of the 64 bits of a word is a fair coin."""
    words = source.uint64((100, 200))
    assert words.shape == (100, 200)
    assert words.dtype == np.uint64
    ones = [int(np.count_nonzero(words >> np.uint64(bit) & np.uint64(1))) for bit in range(64)]
    assert max(abs(one - 10_000) for one in ones) < 7 * np.sqrt(20_000 / 4)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 1000])
def test_bytes_have_the_length_asked_for(count):
    """Byte counts that are no multiple of a word work in both modes."""
    assert len(BitSource().bytes(count)) == count
    assert len(open_streams(1).noise.bytes(count)) == count


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 10, 256, 257])
def test_below_is_uniform(bound):
    """`below` hits every value equally often, also where a remainder would be uneven."""
    source = open_streams(bound).charged
    counts = np.bincount([source.below(bound) for _ in range(40 * bound + 4000)], minlength=bound)
    assert counts.size == bound
    assert bound == 1 or chisquare(counts).pvalue > 1e-4


def test_below_reaches_far_beyond_a_word():
    """Bounds of any size work; the values fill the range."""
    source = open_streams(4).charged
    bound = 3**200
    values = [source.below(bound) for _ in range(200)]
    assert max(values) < bound
    assert max(values) > bound * 9 // 10
    assert min(values) < bound // 10


@pytest.mark.parametrize(("numerator", "bits"), [(1, 1), (3, 3), (77, 8), (333, 10), (1 << 126, 128)])
def test_bernoulli_has_its_probability(numerator, bits):
    """`bernoulli` is True with probability numerator / 2**bits."""
    source = open_streams(bits).charged
    hits = sum(source.bernoulli(numerator, bits) for _ in range(20_000))
    share = numerator / 2**bits
    assert abs(hits - 20_000 * share) < 5 * np.sqrt(20_000 * share * (1 - share))


def test_bernoulli_is_exact_on_every_outcome():
    """Run through all values of the bits: exactly `numerator` of 2**bits of them are True."""

    class Scripted(BitSource):
        def __init__(self, value):
            super().__init__()
            self.value = value

        def bytes(self, count):
            return self.value.to_bytes(count, "little")

    for numerator in (0, 1, 100, 255, 256):
        assert sum(Scripted(value).bernoulli(numerator, 8) for value in range(256)) == numerator
    # With five bits the three surplus bits of the byte play no part.
    assert sum(Scripted(value).bernoulli(11, 5) for value in range(256)) == 11 * 8


def test_bernoulli_ends_are_certain():
    """Probability zero and one are exactly that."""
    source = BitSource()
    assert not any(source.bernoulli(0, 128) for _ in range(100))
    assert all(source.bernoulli(1 << 128, 128) for _ in range(100))
    assert source.bernoulli(1, 0)


def test_bad_arguments_are_refused_without_quoting_the_numerator():
    """The numerator may depend on the data, so no message shows it."""
    source = BitSource()
    with pytest.raises(ValueError, match="`bound` must be at least 1; got 0"):
        source.below(0)
    with pytest.raises(TypeError):
        source.below(2.5)
    with pytest.raises(ValueError, match="`bits` must be"):
        source.bernoulli(0, -1)
    for numerator in (-41, 257):
        with pytest.raises(ValueError, match="`numerator`") as caught:
            source.bernoulli(numerator, 8)
        assert str(numerator) not in str(caught.value)
    with pytest.raises(TypeError, match="64-bit words"):
        BitSource(np.random.MT19937(1))


def test_copies_of_a_secure_source_do_not_share_bits():
    """Nothing is buffered, so a pickled, copied or forked source draws its own bits."""
    source = BitSource()
    source.uint64(3)
    twin, clone = copy.deepcopy(source), pickle.loads(pickle.dumps(source))
    drawn = {tuple(each.uint64(3).tolist()) for each in (source, twin, clone)}
    assert len(drawn) == 3
    assert twin.private
    assert clone.private


def test_repr_names_the_origin():
    """The printed form tells whether the source is private, and nothing of its state."""
    assert repr(BitSource()) == "BitSource(operating-system entropy)"
    assert repr(open_streams(1).noise) == "BitSource(seeded, not private)"


@pytest.mark.parametrize("child", Child)
def test_a_child_draws_its_own_bits_and_leaves_those_of_the_others(child):
    for seed in (7, np.random.SeedSequence(7)):
        whole, other = open_streams(seed), next(one for one in Child if one is not child)
        apart = whole.child(child)
        assert not apart.private
        drawn = apart.noise.bytes(64)
        assert drawn == open_streams(seed).child(child).noise.bytes(64)
        assert len({drawn, whole.noise.bytes(64), whole.child(other).noise.bytes(64)}) == 3
        assert whole.child(child).public.random() == apart.public.random()
    assert open_streams().child(child).private


def test_the_noise_of_a_child_is_opened_once():
    """Equal noise in two steps would give the difference of what they hide away."""
    whole = open_streams(3)
    whole.child(Child.MEAN).noise.bytes(8)
    whole.child(Child.NEAR).child(Child.LOOK).noise.bytes(8)
    whole.child(Child.LOOK).noise.bytes(8)
    with pytest.raises(RuntimeError, match="opened twice"):
        whole.child(Child.MEAN).noise.bytes(8)
    secure = open_streams()
    assert secure.child(Child.MEAN).noise.bytes(8) != secure.child(Child.MEAN).noise.bytes(8)
