"""A release in a few lines that others can compose: what is promised, for whom, and what is public."""

from __future__ import annotations

from decimal import ROUND_UP, Context, Decimal

from privspan._lib.version import __version__
from privspan.privacy.reading import PERSONS, Cost, Released

_DIGITS = Context(prec=8, rounding=ROUND_UP)


def sheet(release: Released, replaced: Cost, left_empty: Cost) -> dict[str, object]:
    """Return the sheet of a release, with its costs for either relation; without a promise there are no claims."""
    claims = [
        {"relation": relation, **claim}
        for relation, cost in (("replace-one", replaced), ("zero-out", left_empty))
        for claim in _claims(cost)
    ]
    public = ("n", "d") if "n_components" in release.extras else ("n", "d", "k")  # that k was chosen privately
    parts = [{"name": part.name} | ({} if part.mu is None else {"mu": _up(part.mu)}) for part in release.cost.parts]
    return {
        "format": "privspan.sheet",
        "version": 1,
        "privspan": __version__,
        "private": release.private,
        "relation": "replace-one",
        "unit": "person" if replaced.neighbours == PERSONS else "row",
        "method": release.method,
        "claims": claims if release.private else [],
        "parts": parts,
        "public": {name: release.parameters[name] for name in public if name in release.parameters},
    }


def _claims(cost: Cost) -> list[dict[str, str]]:
    """Return what a cost claims: in mu, if it is known to be Gaussian, and as epsilon and delta."""
    claims = [{"kind": "approximate-dp", "epsilon": _up(cost.epsilon), "delta": _up(cost.delta)}]
    if cost.mu is None:
        return claims
    gaussian = {"kind": "approximate-gdp", "mu": _up(cost.mu), "delta_aside": _up(cost.delta_aside)}
    return [gaussian | ({"epsilon_aside": _up(cost.epsilon_aside)} if cost.epsilon_aside else {}), *claims]


def _up(value: float) -> str:
    """Return a number to eight digits, rounded up."""
    # Not `normalize()`, which would round once more, by the context of the caller.
    return f"{_DIGITS.normalize(_DIGITS.create_decimal(Decimal(value))):g}" if value else "0"
