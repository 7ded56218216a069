"""How the private PCAs of diffprivlib and OpenDP do on the same records, and how long they take.

Each peer lives in an environment of its own, made on first use (`benchmarks.environments`). Everybody is given
centred records of length 1 and is told so. The peers promise pure epsilon-privacy; ours has a delta of 1e-6, and
``analyze_gauss`` is what a user of that delta could do without us.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import environments, peer_pca
from benchmarks.cells import Cell, Suite, Value
from benchmarks.methods import learn
from privspan.datasets import gaussian_subspace
from privspan.subspace import Subspace

ROWS, DIMENSION, TAIL = 10_000, 2, 0.1
COLUMNS = (4, 6, 8, 10, 12, 16, 32)
OURS = ("adaptive", "analyze_gauss")
LIMIT = 60.0
_SLOW = 12  # from here on the peers run into the time limit: once is enough to see it


def measure(cell: Cell) -> tuple[dict[str, Value], float]:
    """Run one private PCA once."""
    n, d, k, epsilon = (float(value) for value in cell.setting.values())
    X, truth = gaussian_subspace(int(n), int(d), int(k), gamma_w=TAIL, rng=cell.seed)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    if cell.method in OURS:
        found, seconds = learn(cell.method, X, int(k), epsilon=epsilon, seed=cell.seed)
        return {"error": found.distance(truth)}, seconds
    answer = ask_peer(cell.method, X, int(k), epsilon)
    found = Subspace.from_spanning(np.array(answer["components"]).T)
    return {"error": found.distance(truth)}, float(answer["seconds"])


def ask_peer(peer: str, X: Any, k: int, epsilon: float) -> dict[str, Any]:
    """Let a peer fit the records in its own environment; its clock starts after its imports."""
    python = environments.interpreter(peer)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.npy"
        np.save(path, X)
        command = [str(python), peer_pca.__file__, peer, str(path), str(k), str(epsilon)]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"stopped after {LIMIT:g} s") from None
    if run.returncode != 0:
        raise RuntimeError((run.stderr.strip().splitlines() or ["no message"])[-1])
    answer: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    if answer["version"] != environments.version(peer):
        raise RuntimeError(f"{peer} {answer['version']} answered instead of {environments.version(peer)}")
    return answer


def _cells(quick: bool) -> Iterator[Cell]:
    methods = (*environments.PEERS, *OURS)
    for seed in range(1 if quick else 3):
        for d in (4,) if quick else COLUMNS:
            setting: dict[str, Value] = {"n": ROWS, "d": d, "k": DIMENSION, "epsilon": 1.0}
            for method in methods if d < _SLOW or seed == 0 else OURS:
                yield Cell("peers", method, setting, seed)


PEERS = Suite(
    "peers",
    "How do the private PCAs of diffprivlib and OpenDP do on the same records, and how long do they take?",
    ("n", "d", "k", "epsilon"), ("error",), _cells, measure, lambda quick: LIMIT + 30.0,
    prepare=environments.build_all,
)  # fmt: skip
