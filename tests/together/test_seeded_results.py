"""Seeded results of every public function stay what they were, on any x86-64 processor."""

import platform
import subprocess
import sys

import numpy as np
import pytest
import seeded_results


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="results are of kernels for x86-64")
def test_seeded_results_are_those_that_are_stored():
    command = [sys.executable, seeded_results.__file__, "near", str(seeded_results.STORED)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "all equal\n"), run.stderr


def test_the_stored_set_is_large():
    with np.load(seeded_results.STORED) as stored:
        assert len({name.rsplit(": ", 1)[0] for name in stored}) >= 140


def test_the_comparison_sees_a_difference():
    one, tiny, other = ({"error": np.array([1.0, x])} for x in (2.0, 2.0 + 1e-9, 2.1))
    assert seeded_results.differences(one, one) == []
    assert seeded_results.differences(one, tiny, seeded_results.TOLERANCE) == []
    for two in (tiny, other, {}, {"error": np.ones(3)}):
        assert len(seeded_results.differences(one, two)) == 1
