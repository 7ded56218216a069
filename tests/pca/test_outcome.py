"""What every course hands out: signs that are settled, and public numbers as they were given."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import privspan as ps
from privspan.pca.outcome import signed


@given(st.integers(0, 1_000), st.integers(1, 4))
def test_each_component_has_its_largest_entry_positive_and_is_the_same_line(seed, k):
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((5, k)))[0]
    turned = signed(basis)
    assert (turned[np.abs(turned).argmax(axis=0), np.arange(k)] > 0.0).all()
    np.testing.assert_array_equal(np.abs(turned), np.abs(basis))
    np.testing.assert_array_equal(signed(-basis), turned)


def test_what_was_declared_is_told_unless_it_is_very_much():
    X = np.random.default_rng(0).standard_normal((3_000, 3))
    told = ps.private_pca(X, 1, epsilon=1.0, delta=1e-6, rng=0, bounds={0: (-9, 9)}, units={2: 4.0}).parameters
    assert told["declared"] == {"bounds": {"0": (-9.0, 9.0)}, "units": {"2": 4.0}}
    wide = np.zeros((3_000, 201))
    many = dict.fromkeys(range(201), (-1, 1))
    assert "declared" not in ps.private_pca(wide, 1, epsilon=1.0, delta=1e-6, rng=0, bounds=many).parameters
