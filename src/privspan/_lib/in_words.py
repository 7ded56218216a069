"""Numbers as a person would write them, with as many digits as their noise allows."""

from __future__ import annotations

import math
import re


def number(value: float, digits: int = 3) -> str:
    """Return a number as a person would write it: 1e-6, 0.023, 1,500."""
    if isinstance(value, int) or (abs(value) < 1e15 and float(value).is_integer()):
        return f"{int(value):,}"
    if 1e3 <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return _short_exponent(f"{value:.{digits}g}")


def two_digits(value: float) -> str:
    """Return a number with two digits that count, and a true minus sign: 0.50, −0.014."""
    return _short_exponent(f"{value:#.2g}").replace("-", "−")


def _short_exponent(text: str) -> str:
    return re.sub(r"e([+-])0*(\d)", lambda match: f"e{match[1].replace('+', '')}{match[2]}", text)


def angle(sine: float) -> str:
    """Return the angle of a sine in degrees, to two digits."""
    degrees = math.degrees(math.asin(min(1.0, max(0.0, sine))))
    return f"{degrees:.0f}°" if degrees >= 9.95 else f"{degrees:.2g}°"


def share(part: float) -> str:
    """Return a share in per cent, to one decimal unless that is a zero."""
    return f"{round(100.0 * part, 1):g}\u00a0%"


def share_with_noise(part: float, noise: float) -> tuple[str, str]:
    """Return a share in per cent and the standard deviation of its noise, with as many digits as that allows."""
    digits = 0 if noise >= 0.01 else 1
    error = f"± {100.0 * noise:.{digits}f}" if noise >= 0.0005 else "± less than 0.1"
    return f"{100.0 * part:.{digits}f}\u00a0%", f"{error}\u00a0%"


def with_noise(value: float, noise: float) -> str:
    """Return a number and the standard deviation of its noise, with as many digits as that allows: 4.97 ± 0.21."""
    if noise == 0.0:
        return two_digits(value) if 0.0 < abs(value) < 1e-3 else number(value, 4).replace("-", "−")
    places = 1 - math.floor(math.log10(noise))
    if -12 <= places <= 6:
        value, noise, places = round(value, places), round(noise, places), max(places, 0)
        return f"{value:,.{places}f} ± {noise:,.{places}f}".replace("-", "−")
    return _short_exponent(f"{value:.4g} ± {noise:.2g}").replace("-", "−")


def at_most(probability: float) -> str:
    """Return a probability in per cent, rounded up to one decimal, as a bound must be."""
    return f"{math.ceil(round(min(1.0, probability) * 1000.0, 9)) / 10.0:g}\u00a0%"
