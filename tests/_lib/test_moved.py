"""Names of modules from before they moved into rooms."""

import pickle
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from privspan._lib import moved
from privspan.planner.setting import Setting

PICKLE = Path(__file__).with_name("before_the_rooms.pickle")  # written by privspan at aed1958


def python(code: str, *options: str) -> list[str]:
    run = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def test_every_old_name_is_the_module_of_the_new_one_and_says_so() -> None:
    code = f"""
import sys, warnings
from importlib import import_module
for old, new in {moved._HOMES}.items():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        module = import_module(old)
    assert module is sys.modules[new]
    assert module.__name__ == module.__spec__.name == new
    assert f"{{old}} has moved to {{new}}." in [str(each.message) for each in said], old
    assert {{each.category for each in said}} == {{DeprecationWarning}}, old
print(len({moved._HOMES}))
"""
    assert int(python(code)[0]) >= 35


def test_pickles_of_before_still_load_and_work() -> None:
    code = f"""
import pickle, warnings
warnings.filterwarnings("ignore", "Trying to unpickle estimator")
from pathlib import Path
found = pickle.loads(Path({str(PICKLE)!r}).read_bytes())
import privspan as ps
import numpy as np
kinds = (ps.PrivatePCA, ps.Release, ps.PrivateMean, ps.PrivateRegression, ps.Plan)
assert all(isinstance(value, kind) for value, kind in zip(found.values(), kinds, strict=True))
assert found["pca"].transform(np.eye(5)).shape == (5, 2) and found["pca"].release_.cost.epsilon <= 2.0
print(found["release"].subspace.relations()[0].describe(), found["release"].parameters["n"])
assert pickle.loads(pickle.dumps(found["mean"])).cost == found["mean"].cost and found["plan"].error > 0
"""
    assert python(code) == ["x2 = x0 + x1 80"]


def test_plans_pickled_when_the_planner_was_one_module_find_their_setting() -> None:
    assert pickle.loads(b"cprivspan.planner\n_Setting\n.") is Setting


def test_an_old_module_does_not_hide_the_function_of_its_name() -> None:
    code = """
import privspan.baselines
from privspan.baselines.analyze_gauss import analyze_gauss
print(privspan.baselines.analyze_gauss is analyze_gauss and callable(analyze_gauss))
"""
    assert python(code, "-W", "ignore") == ["True"]


def test_other_names_are_unknown() -> None:
    for name in ("privspan.no_such_module", "privspan.algorithms.gdp", "privspan.mean", "gdp"):
        with pytest.raises(ModuleNotFoundError):
            __import__(name)


def test_import_stays_light_and_loads_no_room() -> None:
    code = "import sys, time; start = time.perf_counter(); import privspan; print(time.perf_counter() - start); "
    runs = [python(code + "print(*[name for name in sys.modules if name.startswith('privspan')])") for _ in range(5)]
    assert statistics.median(float(seconds) for seconds, _ in runs) < 0.2  # a hundredth or two on an idle machine
    assert set(runs[0][1].split()) == {"privspan", "privspan._lib", "privspan._lib.moved", "privspan._lib.version"}
