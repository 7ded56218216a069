"""Choosing the dimension privately: every block votes for the largest drop of its singular values.

Block j names the k in 1..k_max with the largest ratio s_k / s_{k+1}. One record reaches one block, so it moves one
ballot, and every count by at most one. The winner is drawn by permute-and-flip (McKenna and Sheldon, "Permute-and-
Flip: a new mechanism for differentially private selection", NeurIPS 2020), which is pure epsilon-DP and errs no
more than the exponential mechanism. All of it is exact: counts are integers and the coins exp(-x) are drawn from
uniform integers, without a float. The proof note is docs/explanation/choosing-k.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan.blocks import plan as planner_blocks
from privspan.blocks.bases import block_spectra
from privspan.blocks.kernels import RANK_TOLERANCE
from privspan.privacy.run import Run
from privspan.rows.dealing import Order
from privspan.rows.table import Table


def choose_dimension(
    X: Table, max_components: int, *, epsilon: float, run: Run, block_size: int | None = None, order: Order = None
) -> int:
    """Choose k in 1..max_components by a private vote of blocks.

    The largest dimension considered is below the number of columns and of records in a block; blocks are as long as
    the planner says, or `block_size`, and follow the public `order` (:func:`privspan.rows.table.Table.order`) of
    the rows of `X`. There is always an answer; with too few blocks for epsilon it is close to uniform.

    Guarantee
    ---------
    (epsilon, 0)-differentially private for replace-one neighbours, for every data set; n, d and all parameters are
    public. Proof: docs/explanation/choosing-k.md.
    """
    checks.positive(epsilon=epsilon)
    m = check_choice(X, max_components, block_size)
    ballots = rank_ballots(*block_spectra(X, max_components + 1, m, order=order))
    counts = np.bincount(ballots, minlength=max_components + 1)[1:].tolist()  # ballot 0 is no vote
    return 1 + run.select(counts, epsilon)


def check_choice(X: Table, max_components: int, block_size: int | None = None) -> int:
    """Refuse, from shapes alone, a choice that cannot be made; return the number of rows in a block."""
    d = X.shape[1]
    checks.integer_at_least(1, max_components=max_components)
    m = planner_blocks.rank_block_size(max_components) if block_size is None else block_size
    if max_components >= min(m, d):
        template = (
            "{max_components} must be below the number of columns and of rows in a block (here {d} and {m}); got "
            "{got!r}."
        )
        raise ParameterError(template, d=d, m=m, got=max_components)
    if X.blocks(m) < 1:
        where = "" if X.local else "a partition of "
        template = "{X} must have {where}at least {m} rows to choose among {max_components} dimensions; got {got}."
        raise ParameterError(template, where=where, m=m, max_components=max_components, got=X.shape[0])
    return m


def rank_ballots(squares: NDArray[np.float64], votes: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Turn squared singular values (t, k_max + 1), relative to the first, into ballots; 0 means no vote.

    Values below the rank tolerance are rounding noise and count as equal, so a block of exact rank r votes for r.
    """
    floored = np.maximum(squares, RANK_TOLERANCE)  # (t, k_max + 1)
    drops = floored[:, :-1] / floored[:, 1:]  # (t, k_max)
    return np.where(votes, 1 + np.argmax(drops, axis=1), 0)
