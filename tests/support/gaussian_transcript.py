"""A microscope for algorithms made of Gaussian steps: what does replacing one record cost along one transcript?

Run the algorithm once on X and keep what every Gaussian step released.  Run it again on a neighbour X' with the same
released values handed back, so that every decision is the same, and compare the values that went in:

    spent  =  sum over all steps of  ||(value - value') / sigma||².

By lemma 2 of docs/explanation/everyday-pca.md the algorithm is mu-GDP if spent <= mu² on every transcript and pair.
"""

import numpy as np

import privspan.sums.grid as sums
import privspan.sums.lazy_gauss as lazy_gauss
import privspan.sums.regression as regression
import privspan.sums.variance as spectrum
from privspan.privacy.noise import add_gaussian

MODULES = (lazy_gauss, regression, spectrum, sums)


class Transcript:
    def __init__(self, monkeypatch):
        self._steps = []
        self._replaying = False
        for module in MODULES:
            monkeypatch.setattr(module, "add_gaussian", self._step)

    def _step(self, values, sigma, bits, *, grid):
        values = np.rint(values / grid) * grid
        if not self._replaying:
            released = add_gaussian(values, sigma, bits, grid=grid)
            self._steps.append((values, sigma, released.copy()))  # the algorithm may work on in its own array
            return released
        before, sigma_before, released = self._steps[self._position]
        assert sigma == sigma_before, "a noise level depends on unreleased values"
        self._position += 1
        self.spent += float(np.sum(((values - before) / sigma) ** 2))
        return released.copy()

    def spent_by(self, run, X, neighbour):
        """Return the sum above for two inputs of `run`, which must use the same seed on both."""
        self._steps, self._replaying = [], False
        run(X)
        self._replaying, self._position, self.spent = True, 0, 0.0
        run(neighbour)
        assert self._position == len(self._steps), "the number of steps depends on unreleased values"
        return self.spent
