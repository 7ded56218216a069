"""The microscope of `gaussian_transcript` for a course with a private test: what does one record cost on one path?

The first run keeps what every step released; the second run, on a neighbour, is handed the same values, so it takes
the same path, and what went in is compared. Histograms and shares are integers with noise. A coin between margins of
at least 1 costs the square of the difference of its scores. The noisy basis is compared after the best rotation,
which the mechanism draws at random (docs/explanation/one-algorithm.md, lemma 3). `answer` decides what the coin says.
"""

import numpy as np
from gaussian_transcript import Transcript
from scipy.linalg import orthogonal_procrustes
from scipy.special import ndtri

from privspan.stable import course, records, release, scales


class CourseTranscript(Transcript):
    def __init__(self, monkeypatch, *, answer=True):
        super().__init__(monkeypatch)
        self._answer, self.coins = answer, []
        self._genuine = {
            "histogram": scales.noisy_histogram, "share": scales.released_share, "items": release.certified_items,
            "noise": release._with_noise, "gaussian": records.add_gaussian,
        }  # fmt: skip
        for module in (scales, records):
            monkeypatch.setattr(module, "noisy_histogram", self._histogram)
        for module in (course, records):
            monkeypatch.setattr(module, "released_share", self._share)
        monkeypatch.setattr(records, "add_gaussian", self._strength)
        monkeypatch.setattr(records, "certified_items", self._test)
        monkeypatch.setattr(release, "_with_noise", self._basis)

    def _kept(self, value, sigma, draw, distance=None):
        """Draw and keep what is released, or hand it back and add up what the value's change costs."""
        if not self._replaying:
            self._steps.append((value, sigma, draw()))
            return self._steps[-1][2]
        before, sigma_before, released = self._steps[self._position]
        assert sigma == sigma_before, "a noise level depends on unreleased values"
        self._position += 1
        change = np.linalg.norm(np.subtract(value, before)) if distance is None else distance(value, before)
        self.spent += float(change / sigma) ** 2
        return released

    def _histogram(self, bins, size, mu, bits):
        counts = np.bincount(bins[(bins >= 0) & (bins < size)], minlength=size)
        return self._kept(counts, np.sqrt(2.0) / mu, lambda: self._genuine["histogram"](bins, size, mu, bits))

    def _share(self, count, groups, mu, bits):
        return self._kept(count, 1.0 / mu, lambda: self._genuine["share"](count, groups, mu, bits))

    def _strength(self, values, sigma, bits):
        return self._kept(values, sigma, lambda: self._genuine["gaussian"](values, sigma, bits))

    def _basis(self, basis, shift, mu, bits):
        def distance(one, other):
            return np.linalg.norm(one @ orthogonal_procrustes(one, other)[0] - other)

        return self._kept(basis, shift / mu, lambda: self._genuine["noise"](basis, shift, mu, bits), distance)

    def _test(self, gram, width, k, plan, mu, delta, bits):
        margins, coin = [], release.goes_on
        release.goes_on = lambda margin, *_: margins.append(margin) or margin >= 1
        try:
            passed = self._genuine["items"](gram, width, k, plan, mu, delta, bits)
        finally:
            release.goes_on = coin
        margin = margins[0] if margins else 0
        self.coins.append(margin)

        def lost_or_scores(one, other):
            if min(one, other) >= 1:
                return abs(one - other) * mu  # of scores, which are capped further up
            assert max(one, other) <= 1, "margins of neighbours differ by more than one"
            return 0.0  # on either side *no* has probability 1 - delta at least, which is what is compared

        answer = self._kept(margin, 1.0, lambda: self._answer and margin >= 1, lost_or_scores)
        assert float(ndtri(delta)) < 0
        return passed if answer else None
