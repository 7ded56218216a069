"""Replay of everyday PCA on neighbours: what a replacement costs, and whether it shows in anything else."""

import numpy as np
from runs import seeded

from privspan.audit.replay import spent_by
from privspan.privacy.randomness import Child
from privspan.rows.door import open_table
from privspan.stable.near import NearCourse
from privspan.sums.everyday import EverydayCourse
from privspan.sums.everyday_tuning import EVERYDAY, EverydayTuning

DELTA = 1e-6
BY_A_DRAW = EverydayTuning(few_rows=1_000, few=0.0)
"""Tables of 2,000 rows and more are searched by a public draw of 1,000."""


def fitted(X, rng=0, *, k=2, epsilon=1.0, around=None, search=None, tuning=EVERYDAY):
    """Run everyday PCA on any table; it searches for a centre if none is given."""
    course = EverydayCourse(open_table(X, min_rows=2), k, seeded(rng, epsilon, DELTA), tuning)
    return course.looked(course.rough_centre(around, around is None if search is None else search))


def near(X, rng=0, *, k=2, epsilon=1.0, tuning=EVERYDAY):
    """Run everyday PCA with the course near a subspace, on tables that stable leverage is no use for."""
    source, run = open_table(X, min_rows=2), seeded(rng, epsilon, DELTA)
    apart = seeded(rng + 1) if isinstance(rng, int) else run.on(Child.NEAR)
    course = EverydayCourse(source, k, run, tuning)
    centre = course.rough_centre(None, True)
    look = NearCourse(source, k, run, apart)(centre) if centre is not None and centre.located else None
    return course.looked(centre) if look is None else look


def numbers(look):
    """Return everything that a look releases, as one array."""
    noisy = (look.mean, look.variances, look.total, look.ratios, look.captured, look.shortened)
    both = [value for one in noisy if one is not None for value in (one.value, one.std)]
    described = [value for value in look.about.values() if not isinstance(value, str)]
    values = (look.basis, look.components_std, *both, look.stands_out, look.clip, look.at_least, *described)
    return np.concatenate([np.ravel(np.asarray(value, dtype=float)) for value in values])


def replayed(X, neighbour, run=fitted, seed=0):
    """Return the share of mu² that a replacement costs along one transcript, and whether the results are equal."""
    looks = []

    def kept(table, rng):
        looks.append(run(table, rng))

    spent = spent_by(kept, X, neighbour, seed=seed)
    return spent, np.array_equal(numbers(looks[0]), numbers(looks[1]), equal_nan=True)
