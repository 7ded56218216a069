"""What every test shares: reproducible Hypothesis runs, one BLAS thread, no window for a picture, little to sweep."""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # read once, when the first test module imports NumPy
os.environ.setdefault("MPLBACKEND", "Agg")

# A busy machine must not fail a test, so no deadline. The same examples come every time; to hunt for new
# ones, run `HYPOTHESIS_PROFILE=hunt make test`.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("hunt", settings.get_profile("steady"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

collect_ignore_glob = ["*conftest.py"]  # no examples in them, and all have one name


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Leave what is imported and collected, which stays to the end, out of every later search for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
