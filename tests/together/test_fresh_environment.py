"""The core in an environment of its own: NumPy, SciPy and python-flint, and nothing else."""

import subprocess
import sys
import textwrap
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = {"numpy", "pip", "privspan", "python_flint", "scipy"}
PROGRAM = """
    import numpy as np, privspan as ps
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2)) @ rng.normal(size=(2, 6)) + 0.01 * rng.normal(size=(4000, 6))
    budget = {"epsilon": 1.0, "delta": 1e-6}
    assert ps.private_pca(X + 3.0, 2, **budget).subspace.dimension == 2
    assert ps.private_subspace(X, 2, **budget).subspace.dimension == 2
    assert ps.private_mean(X, **budget).mean.shape == (6,)
    whole = rng.integers(-50, 50, (80, 2)) @ rng.integers(-4, 5, (2, 5))
    assert ps.exact_subspace(whole, 2, **budget).subspace.dimension == 2
    assert ps.baselines.mod_sulq(X, 2, **budget).subspace.dimension == 2
    try:
        ps.PrivatePCA
    except ImportError as error:
        assert "privspan[sklearn]" in str(error)
    else:
        raise SystemExit("scikit-learn is here")
"""


@pytest.mark.slow
def test_the_wheel_needs_the_core_alone_and_holds_the_package_alone(tmp_path: Path) -> None:
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(wheel, check=True)
    (built,) = tmp_path.glob("privspan-*.whl")
    with zipfile.ZipFile(built) as archive:
        assert {name.split("/")[0].split("-")[0] for name in archive.namelist()} == {"privspan"}
        assert [name for name in archive.namelist() if "bench" in name and name != "privspan/cli/bench.py"] == []
    venv.create(tmp_path / "fresh", with_pip=False)
    python = tmp_path / "fresh" / "bin" / "python"
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", str(built)], check=True
    )
    site = next((tmp_path / "fresh" / "lib").glob("python*/site-packages"))
    installed = {path.name.split("-")[0].lower() for path in site.glob("*.dist-info")}
    assert installed <= CORE
    subprocess.run([str(python), "-W", "error", "-c", textwrap.dedent(PROGRAM)], check=True, cwd=tmp_path)
