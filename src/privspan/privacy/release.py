"""What a private algorithm hands out: `Release`, with its cost, and everything that can be read off it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privspan._lib import above
from privspan._lib.card import card
from privspan._lib.errors import ParameterError, ParameterTypeError
from privspan._lib.frozen import FrozenMapping, plain
from privspan._lib.record import Record
from privspan.privacy.cost import PrivacyCost
from privspan.privacy.reading import Reading
from privspan.privacy.release_card import release_pieces
from privspan.privacy.rotated import Rotated, rotated
from privspan.privacy.sheet import sheet
from privspan.subspace import Subspace
from privspan.subspace.rotation import Criterion


@dataclass(frozen=True, repr=False)
class Release:
    """The result of a private algorithm: everything that may be published, and nothing else.

    Parameters
    ----------
    subspace : Subspace or None
        The subspace found; None when the algorithm abstained.
    cost : PrivacyCost
        The privacy cost, the same whether it abstained or not.
    method : str
        The name of the method.
    parameters : mapping
        Public parameters and released values that describe the run.  Copied and read-only.
    private : bool, default=True
        False when a seed was given: the noise can then be reproduced, and there is no guarantee.
    extras : mapping, optional
        Released values beyond the subspace.  Copied and read-only.
    """

    subspace: Subspace | None
    cost: PrivacyCost
    method: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    private: bool = True
    extras: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (self.subspace is None or isinstance(self.subspace, Subspace)):
            raise ParameterTypeError(
                "{subspace} must be a Subspace or None; got {kind}.", kind=type(self.subspace).__name__
            )
        if not isinstance(self.cost, PrivacyCost):
            raise ParameterTypeError("{cost} must be a PrivacyCost; got {kind}.", kind=type(self.cost).__name__)
        if not isinstance(self.method, str):
            raise ParameterTypeError("{method} must be a str; got {kind}.", kind=type(self.method).__name__)
        if not isinstance(self.private, bool):  # "false" and NaN are true, and would promise what nobody did
            raise ParameterTypeError("{private} must be True or False; got {kind}.", kind=type(self.private).__name__)
        object.__setattr__(self, "parameters", FrozenMapping(self.parameters))
        object.__setattr__(self, "extras", FrozenMapping(self.extras))

    @property
    def abstained(self) -> bool:
        """Whether the algorithm released no subspace.  It cost the full budget all the same."""
        return self.subspace is None

    @property
    def headline(self) -> str:
        """The estimated quality of the release in a few words; empty where it has no estimate."""
        reading = Reading(self)
        if reading.nothing_stands_out:
            return "finds nothing that stands out of the noise"
        if reading.captured is None or reading.stands_out is None:
            return ""
        if reading.k == reading.d:
            return "holds all of the variance: there are as many components as columns"
        said = f"captures {reading.captured_of('components')}".replace("\u00a0%", "%")
        if reading.stands_out == reading.k:
            return said
        return f"{said}; {reading.stands_out} of {reading.k} components stand out of the noise, the rest is noise"

    def to_dict(self) -> dict[str, Any]:
        """Return a description of the release as a dictionary for JSON.

        The subspace is summarised by its dimensions; `save` stores it whole.
        """
        return {
            "method": self.method,
            "abstained": self.abstained,
            "private": self.private,
            "subspace": None if self.subspace is None else self.subspace.summary(),
            "cost": self.cost.to_dict(),
            "parameters": plain(self.parameters),
            "extras": plain(self.extras),
        }

    def rotate(
        self, criterion: Criterion = "varimax", *, kaiser: bool = True, columns: Sequence[str] | None = None
    ) -> Rotated:
        """Rotate the components that stand out of the noise to simple structure: few large loadings on each factor.

        Post-processing: it costs nothing, and every criterion may be tried.  The factors are sorted by falling
        variance, each with its largest loading positive.

        Parameters
        ----------
        criterion : {"varimax", "quartimax", "promax", "oblimin"}, default="varimax"
            The first two keep the factors uncorrelated, the others allow correlation.
        kaiser : bool, default=True
            Whether all columns have the same weight, as if each had a communality of 1 (in promax only for its
            varimax). Columns that are mostly noise then count as well; ``False`` weights columns by communality.
        columns : sequence of str, optional
            Names of the columns, if the release has none.

        Returns
        -------
        Rotated
            Loadings, variances, correlations of factors and communalities, with their errors.

        Examples
        --------
        >>> from privspan.datasets import gaussian_subspace
        >>> import privspan as ps
        >>> X, _ = gaussian_subspace(5_000, 8, 2, gamma_w=0.1, rng=0)
        >>> ps.private_pca(X, 2, epsilon=1.0, delta=1e-6, rng=0).rotate("promax")
        Rotated(promax, 2 factors of 8 columns, private=False)
        """
        return rotated(self, criterion, kaiser=kaiser, columns=columns)

    def sheet(self) -> dict[str, object]:
        """Return the guarantee, its unit and what is public as a dictionary for JSON, for other tools to compose.

        Numbers are decimals, rounded up.  A release made with a seed has no claims.

        Examples
        --------
        >>> sheet = Release(None, PrivacyCost(1.0, 1e-6), "exact", {"n": 100}).sheet()
        >>> sheet["claims"][0]
        {'relation': 'replace-one', 'kind': 'approximate-dp', 'epsilon': '1', 'delta': '0.000001'}
        >>> sheet["unit"], sheet["public"]
        ('row', {'n': 100})
        """
        return sheet(self, self.cost, self.cost.zero_out())

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        plan: Any = None,
        record: Record | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write the release to one ``.npz`` file, with everything that ``privspan show`` prints, and return its path.

        Parameters
        ----------
        path
            The suffix ``.npz`` is added to a name that has none.
        plan : Plan, optional
            The prediction made before, such as the ``plan_`` of :class:`privspan.PrivatePCA`.
        record : Record, optional
            When, by whom, for what and from which columns it was made: :class:`privspan.report.Record`.
        overwrite : bool, default=False
            Whether to replace a file of that name; ``FileExistsError`` if not.

        Examples
        --------
        >>> import numpy as np, privspan as ps, tempfile
        >>> X = np.arange(1, 101)[:, None] * np.array([[1, 2, 3]])
        >>> release = ps.exact_subspace(X, 1, epsilon=1.0, delta=1e-6, rng=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     again = ps.Release.load(release.save(f"{folder}/line"))
        >>> again == release
        True
        """
        saved: Path = above.release_files().save_release(path, self, plan=plan, record=record, overwrite=overwrite)
        return saved

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Release:
        """Read a release that `save` or ``privspan fit`` wrote; nothing in the file is ever executed.

        ``ValueError`` for a file that is damaged, of another kind, or written by `Subspace.save`, which stores no
        cost. :func:`privspan.ledger.release_file.load_release` reads the plan and the record too.
        """
        release: Release | None = above.release_files().load_release(path).release
        if release is None:
            raise ParameterError(
                "{file!r} holds a subspace without its privacy cost; read it with Subspace.load.", file=str(path)
            )
        return release

    def __repr__(self) -> str:
        found = "abstained" if self.subspace is None else repr(self.subspace)
        extras = f", extras: {', '.join(self.extras)}" if self.extras else ""
        said = f"{self.headline}, " if self.headline else ""
        return f"<Release {self.method!r}: {said}{found}, {self.cost}, private={self.private}{extras}>"

    def _repr_html_(self) -> str:
        """Show it as a card in a notebook."""
        return card("Release", *release_pieces(self))

    def __str__(self) -> str:
        found = "nothing (abstained)" if self.subspace is None else str(self.subspace)
        promise = str(self.cost) if self.private else f"none: a seed was given (would be {self.cost})"
        details = [f"  {name}: {plain(value)}" for name, value in self.parameters.items()]
        lines = [self.headline] if self.headline else []
        lines += [f"released: {found}", f"method: {self.method}", f"privacy: {promise}"]
        return "\n".join([*lines, "parameters:", *details] if details else lines)
