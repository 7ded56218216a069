"""When does a subspace pay?  Classifiers and gradients, in subspaces that are random, private or already released.

(a) `private_classifier` on all columns, on a random projection, within a private subspace that shares the budget
(half of mu²), and within one that costs nothing more (released before, or public: here ordinary PCA of the same
rows).  Of several dimensions the best is reported for each cell, in favour of subspaces.  The same for 15 tasks on
one table, which share one budget and one subspace (a quarter of mu²).
(b) Training by private gradient descent (clipped, full batches, float noise of the right size: a simulation): a
network with 196 inputs (14 × 14 pixels), 16 hidden units and 10 classes on digits.  How much of the mean gradient
lies in the top directions of the first gradients; and how good training is with all of the gradient, projected onto
a privately learnt subspace of gradients, only on the last layer, or on inputs that were projected before.  Then
in the regime of the paper: 2,000 rows of 2,000 columns close to a subspace (tail .001).
Prints the tables of docs/explanation/when-it-pays.md.

    python benchmarks/scripts/when_it_pays.py [--quick]
"""

import argparse
import math
import warnings

import numpy as np
from classifiers import TABLES, divided
from sklearn.datasets import load_digits

import privspan as ps
from privspan.datasets import gaussian_subspace
from privspan.privacy import Budget

DELTA, SEEDS, EPSILONS = 1e-6, 5, (0.5, 1.0, 3.0)
DIMENSIONS = (5, 10, 20)
TASKS = 15


def told(values: list[float]) -> str:
    error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{np.mean(values):.3f} ± {error:.3f}"


def part(epsilon: float, share: float) -> dict[str, float]:
    """Return the budget that has a share of mu²."""
    budget = Budget.for_mu(Budget(epsilon, DELTA).mu * math.sqrt(share), DELTA)
    return {"epsilon": budget.epsilon, "delta": budget.delta}


# ---- (a) Classifiers -----------------------------------------------------------------------------------------------


def plain_pca(X: np.ndarray, k: int) -> ps.Subspace:
    mean = X.mean(axis=0)
    vectors = np.linalg.eigh(np.cov(X.T))[1][:, ::-1][:, :k]
    return ps.Subspace(vectors, offset=mean)


def random_subspace(d: int, k: int, seed: int) -> ps.Subspace:
    return ps.Subspace(np.linalg.qr(np.random.default_rng(seed).standard_normal((d, k)))[0])


def private_subspace(X: np.ndarray, k: int, budget: dict[str, float], seed: int) -> ps.Subspace | None:
    return ps.private_pca(X, k, **budget, rng=seed).subspace


def right(X, y, learnt, new, classes, budget, subspace, seed) -> float:
    options = {} if subspace is None else {"subspace": subspace}
    made = ps.private_classifier(X[learnt], y[learnt], classes=classes, **budget, **options, rng=seed)
    return float((made.predict(X[new]) == y[new]).mean())


def best_of(made: dict[int, list[float]]) -> str:
    k = max(made, key=lambda k: np.mean(made[k]))
    return f"{told(made[k])} (k = {k})"


def one_task(name: str, epsilon: float, seeds: int) -> str:
    X, y, _ = TABLES[name]()
    classes, whole = np.unique(y).tolist(), {"epsilon": epsilon, "delta": DELTA}
    half, rest = part(epsilon, 0.5), part(epsilon, 0.49)
    everything, kinds = [], {kind: {k: [] for k in DIMENSIONS} for kind in ("random", "private", "released")}
    for seed in range(seeds):
        learnt, new = divided(len(X), seed)
        everything.append(right(X, y, learnt, new, classes, whole, None, seed))
        for k in DIMENSIONS:
            within = {
                "random": (random_subspace(X.shape[1], k, seed), whole),
                "private": (private_subspace(X[learnt], k, half, seed), rest),
                "released": (plain_pca(X[learnt], k), whole),
            }
            for kind, (subspace, budget) in within.items():
                kinds[kind][k].append(right(X, y, learnt, new, classes, budget, subspace, seed))
    cells = " | ".join(best_of(kinds[kind]) for kind in kinds)
    return f"| {name} | {epsilon:g} | {told(everything)} | {cells} |"


def many_tasks(epsilon: float, seeds: int) -> str:
    """Tell fifteen halves of the digits apart: accuracy with all columns, and in one private subspace."""
    X, y, _ = TABLES["digits"]()
    apart, together = [], {k: [] for k in DIMENSIONS}
    for seed in range(seeds):
        learnt, new = divided(len(X), seed)
        halves = [np.random.default_rng(task).permutation(10) < 5 for task in range(TASKS)]
        each, within = part(epsilon, 1.0 / TASKS), part(epsilon, 0.74 / TASKS)
        apart.append(
            float(np.mean([right(X, half[y] * 1, learnt, new, [0, 1], each, None, seed * TASKS + i)
                           for i, half in enumerate(halves)]))
        )  # fmt: skip
        for k in DIMENSIONS:
            subspace = private_subspace(X[learnt], k, part(epsilon, 0.25), seed)
            together[k].append(
                float(np.mean([right(X, half[y] * 1, learnt, new, [0, 1], within, subspace, seed * TASKS + i)
                               for i, half in enumerate(halves)]))
            )  # fmt: skip
    return f"| {epsilon:g} | {told(apart)} | {best_of(together)} |"


# ---- (b) Gradients -------------------------------------------------------------------------------------------------

STEPS, RATE, HIDDEN = 40, 2.0, 16
SUBSPACE_SHARE, GRADIENT_K = 0.3, 20


class Network:
    """A network with one hidden layer of tanh, and its gradients row by row."""

    def __init__(self, d: int, classes: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.shapes = (d, HIDDEN), (HIDDEN, classes)
        first = rng.standard_normal(self.shapes[0]) / math.sqrt(d)
        second = rng.standard_normal(self.shapes[1]) / math.sqrt(HIDDEN)
        self.weights = np.concatenate([first.ravel(), second.ravel()])

    def layers(self) -> tuple[np.ndarray, np.ndarray]:
        cut = math.prod(self.shapes[0])
        return self.weights[:cut].reshape(self.shapes[0]), self.weights[cut:].reshape(self.shapes[1])

    def parts(self, X: np.ndarray, y: np.ndarray, last_only: bool = False) -> tuple[np.ndarray, ...]:
        """Return what minus the gradients are products of, z and g of both layers, cut to length 1."""
        first, second = self.layers()
        hidden = np.tanh(X @ first)
        scores = np.exp(hidden @ second - (hidden @ second).max(axis=1, keepdims=True))
        missing = np.eye(self.shapes[1][1])[y] - scores / scores.sum(axis=1, keepdims=True)
        back = (missing @ second.T) * (1.0 - hidden**2) * (not last_only)
        squares = [(one**2).sum(axis=1) * (other**2).sum(axis=1) for one, other in ((X, back), (hidden, missing))]
        cut = 1.0 / np.maximum(1e-12 if last_only else 1.0, np.sqrt(sum(squares)))[:, None]
        return X, back * cut, hidden, missing * cut

    def gradients(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return minus the gradient of each row, (n, weights)."""
        X, back, hidden, missing = self.parts(X, y)
        pairs = ((X, back), (hidden, missing))
        return np.hstack([np.einsum("ni,nj->nij", *pair).reshape(len(X), -1).astype(np.float32) for pair in pairs])

    def total(self, X: np.ndarray, y: np.ndarray, last_only: bool = False) -> np.ndarray:
        """Return the sum of them, (weights,)."""
        X, back, hidden, missing = self.parts(X, y, last_only)
        return np.concatenate([(X.T @ back).ravel(), (hidden.T @ missing).ravel()])

    def right(self, X: np.ndarray, y: np.ndarray) -> float:
        first, second = self.layers()
        return float(((np.tanh(X @ first) @ second).argmax(axis=1) == y).mean())


def pixels() -> tuple[np.ndarray, np.ndarray]:
    """Return digits as 14 × 14 pixels, of length 1 and about the public middle of each pixel's range."""
    images, y = load_digits(return_X_y=True)
    places = np.linspace(0, 7, 14).round().astype(int)
    X = images.reshape(-1, 8, 8)[:, places][:, :, places].reshape(len(y), -1) / 16.0 - 0.3
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def directions(gradients: np.ndarray, k: int, mu: float, seed: int) -> np.ndarray:
    """Return k leading directions of the rows' second moment: by noisy power iterations, three of them."""
    rng, m = np.random.default_rng(seed), gradients.shape[1]
    basis, each = np.linalg.qr(rng.standard_normal((m, k)))[0], mu / math.sqrt(3)
    for _ in range(3):
        noise = math.sqrt(2.0) / each * rng.standard_normal((m, k)) if math.isfinite(mu) else 0.0
        basis = np.linalg.qr(gradients.T @ (gradients @ basis) + noise)[0]
    return basis


def trained(X, y, new_X, new_y, mu: float, seed: int, way: str) -> float:
    """Train by noisy gradient steps that share mu², in one of several ways; return the accuracy on new rows."""
    rng, network = np.random.default_rng(1000 + seed), Network(X.shape[1], int(y.max()) + 1, seed)
    basis, left = None, mu
    last = math.prod(network.shapes[0])
    if way == "projected":
        basis = directions(network.gradients(X, y), GRADIENT_K, mu * math.sqrt(SUBSPACE_SHARE), seed)
        left = mu * math.sqrt(1.0 - SUBSPACE_SHARE)
    for _ in range(STEPS):
        total = network.total(X, y, way == "last layer")
        noise = 2.0 * math.sqrt(STEPS) / left
        if basis is None:
            seen = np.arange(len(total)) >= last * (way == "last layer")
            total = total + noise * rng.standard_normal(len(total)) * seen
        else:
            total = basis @ (basis.T @ total + noise * rng.standard_normal(basis.shape[1]))
        # No step is longer than it would be without noise, so that noise alone does not blow the weights up.
        network.weights = network.weights + RATE * total / max(float(np.linalg.norm(total)), 0.1 * len(X))
    return network.right(new_X, new_y)


def top_shares(X: np.ndarray, y: np.ndarray, seed: int) -> list[float]:
    """Return how much of the rows' gradients, and of their mean after 0, 10, 30 steps, the first directions hold."""
    network, shares = Network(X.shape[1], int(y.max()) + 1, seed), []
    basis = directions(network.gradients(X, y), GRADIENT_K, math.inf, seed)
    for step in range(31):
        gradients = network.gradients(X, y)
        mean = gradients.mean(axis=0)
        if step in (0, 30):
            shares.append(float(((gradients @ basis) ** 2).sum() / (gradients**2).sum()))
        if step in (0, 10, 30):
            shares.append(float(((mean @ basis) ** 2).sum() / (mean**2).sum()))
        network.weights = network.weights + RATE * mean / float(np.linalg.norm(mean))
    return shares


def in_the_regime_of_the_paper(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 2,000 rows of 2,000 columns near 8 dimensions, which decide the class, of four."""
    X, truth = gaussian_subspace(2_500, 2_000, 8, gamma_w=0.001, rng=seed)
    inside = X @ truth.basis
    y = inside[:, :4].argmax(axis=1)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def training(name: str, epsilon: float, seeds: int) -> str:
    mu, ways = Budget(epsilon, DELTA).mu, {way: [] for way in ("all", "projected", "last layer", "inputs")}
    for seed in range(seeds):
        X, y = pixels() if name == "digits" else in_the_regime_of_the_paper(seed)
        learnt, new = divided(len(X), seed)
        inside = plain_pca(X[learnt], 20 if name == "digits" else 8)
        for way in ways:
            rows = X if way != "inputs" else inside.coordinates(X)
            rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
            ways[way].append(trained(rows[learnt], y[learnt], rows[new], y[new], mu, seed, way))
    return f"| {name} | {epsilon:g} | {' | '.join(told(values) for values in ways.values())} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, one epsilon, the smallest tables")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    seeds, epsilons = (1, (1.0,)) if quick else (SEEDS, EPSILONS)
    print("| table | ε | all columns | random | private, one budget | released before |\n|---|---|---|---|---|---|")
    for name in ("breast cancer",) if quick else ("digits", "breast cancer", "ancestry", "Adult"):
        for epsilon in epsilons:
            print(one_task(name, epsilon, seeds), flush=True)
    print("\n| ε | 15 tasks, all columns | 15 tasks, one private subspace |\n|---|---|---|")
    for epsilon in epsilons:
        print(many_tasks(epsilon, 1 if quick else 3), flush=True)
    shares = np.array([top_shares(*pixels(), seed) for seed in range(1 if quick else 3)])
    print(f"\nIn the first {GRADIENT_K} directions of gradients: rows and mean at the start, mean after 10 steps,")
    print(f"rows and mean after 30: {shares.mean(axis=0).round(2).tolist()}\n")
    print("| table | ε | all of the gradient | projected | last layer only | inputs projected before |")
    print("|---|---|---|---|---|---|")
    for name in ("digits",) if quick else ("digits", "2,000 × 2,000"):
        for epsilon in epsilons:
            print(training(name, epsilon, seeds if name == "digits" else 2), flush=True)


if __name__ == "__main__":
    main()
