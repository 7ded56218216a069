"""Rotations agree with other programs, and depend on what is rotated and not on how it is written down."""

import numpy as np
import pytest

from privspan.subspace.rotation import correlations, factor_variances, fixed, turn_to

LOADINGS = np.array(
    [
        [-0.660045, -0.028154, -0.576064],
        [-0.727927, -0.053232, -0.264157],
        [-0.348429, 0.05645, -0.338248],
        [-0.453296, 0.745855, 0.034281],
        [-0.227161, 0.610845, 0.101183],
        [0.034659, 0.521884, 0.338427],
        [-0.636812, -0.28749, 0.411843],
        [-0.579737, -0.206532, 0.330214],
        [-0.529399, -0.223442, 0.396435],
    ]
)
STORED = {  # of factor_analyzer 0.5.1: the pattern, and the correlations of the factors 1-2, 1-3, 2-3
    ("varimax", True): (
        [[-0.114376, -0.011915, -0.868952], [-0.364138, 0.061891, -0.682688], [-0.013812, 0.051509, -0.48596],
         [-0.072603, 0.817455, -0.299078], [-0.004046, 0.652764, -0.094097], [0.000253, 0.566218, 0.259795],
         [-0.802943, -0.005025, -0.114245], [-0.683603, 0.035441, -0.138647], [-0.695483, 0.024299, -0.055341]],
        [0.0, 0.0, 0.0],
    ),
    ("quartimax", False): (
        [[-0.087285, 0.073822, -0.869042], [-0.342545, 0.130416, -0.684211], [0.001458, 0.098901, -0.478767],
         [-0.061238, 0.84319, -0.219619], [0.000496, 0.658852, -0.029753], [-0.006443, 0.538062, 0.313919],
         [-0.799005, 0.010601, -0.138828], [-0.678863, 0.052603, -0.155465], [-0.69336, 0.033427, -0.074057]],
        [0.0, 0.0, 0.0],
    ),
    ("promax", False): (
        [[0.069821, 0.073909, -0.890771], [-0.229453, 0.114953, -0.648978], [0.09335, 0.10214, -0.497489],
         [0.016028, 0.845336, -0.186576], [0.037556, 0.662561, -0.006102], [-0.038039, 0.538838, 0.350177],
         [-0.814306, -0.035025, -0.000184], [-0.682949, 0.014276, -0.037747], [-0.713917, -0.006292, 0.049334]],
        [-0.116181, 0.337769, -0.05852],
    ),
    ("oblimin", False): (
        [[0.037105, 0.016915, -0.884107], [-0.253063, 0.076748, -0.64309], [0.074119, 0.07011, -0.49017],
         [-0.001279, 0.838445, -0.141833], [0.028863, 0.665819, 0.028802], [-0.032291, 0.564818, 0.377131],
         [-0.810979, -0.026695, -0.008283], [-0.68204, 0.019136, -0.042164], [-0.709555, 0.004312, 0.043383]],
        [-0.107687, 0.302369, -0.166088],
    ),
}  # fmt: skip
CRITERIA = ("varimax", "quartimax", "promax", "oblimin")


@pytest.mark.parametrize(("criterion", "kaiser"), STORED)
def test_numbers_are_those_of_factor_analyzer(criterion, kaiser):
    turn = turn_to(LOADINGS, criterion, kaiser=kaiser)
    pattern, between = (np.array(one) for one in STORED[criterion, kaiser])
    found = LOADINGS @ turn
    among = found.T @ pattern
    order = np.abs(among).argmax(axis=0)
    signs = np.sign(among[order, np.arange(3)])
    assert np.abs(found[:, order] * signs - pattern).max() < 3e-6
    phi = correlations(turn)[np.ix_(order, order)] * np.outer(signs, signs)
    assert np.abs(phi[np.triu_indices(3, 1)] - between).max() < 3e-6


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("seed", range(3))
def test_only_the_span_matters(criterion, seed):
    rng = np.random.default_rng(seed)
    mixed = LOADINGS @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
    one, other = (of @ fixed(of, turn_to(of, criterion)) for of in (LOADINGS, mixed))
    assert np.abs(one - other).max() < 1e-5


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("kaiser", [True, False])
def test_what_is_explained_stays(criterion, kaiser):
    turn = fixed(LOADINGS, turn_to(LOADINGS, criterion, kaiser=kaiser))
    pattern, between = LOADINGS @ turn, correlations(turn)
    assert np.abs(pattern @ between @ pattern.T - LOADINGS @ LOADINGS.T).max() < 1e-12
    assert np.abs(np.diagonal(between) - 1.0).max() < 1e-9
    variances = factor_variances(pattern, between)
    assert variances.sum() == pytest.approx((LOADINGS**2).sum())
    assert (np.diff(variances) <= 0.0).all()
    assert (pattern[np.abs(pattern).argmax(axis=0), range(3)] > 0.0).all()


@pytest.mark.parametrize("criterion", CRITERIA)
def test_awkward_loadings_have_a_rotation(criterion):
    for loadings in (np.eye(4, 2), np.zeros((5, 1)) + 0.5, np.vstack([LOADINGS, np.zeros((2, 3))]), np.eye(3)):
        turn = turn_to(loadings, criterion)
        assert np.isfinite(turn).all()
        assert np.isfinite(correlations(turn)).all()


def test_a_start_is_kept_to():
    turn = turn_to(LOADINGS, "varimax")
    assert np.abs(turn_to(LOADINGS * 1.01, "varimax", start=turn) - turn).max() < 1e-6
