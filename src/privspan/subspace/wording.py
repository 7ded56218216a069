"""Equations in integers, written the way a person would write them."""

from __future__ import annotations

from collections.abc import Sequence

_Term = tuple[str, int]  # a column's name and its coefficient

_LONGEST_WRITTEN = 10_000  # bits; Python refuses to print integers beyond about 14,000


def equation(terms: Sequence[_Term], constant: int) -> str:
    """Write ``sum of coefficient * name + constant = 0`` with a sensible left-hand side.

    * All coefficients of one sign and a constant: the columns on the left ("a + b = 100").
    * Otherwise one column on the left: the one that leaves the fewest minus signs on the right ("total = a + b",
      not "a = total - b"; "2 mean = a + b"), then the smallest coefficient, then the leftmost column.

    `terms` are every column that takes part, at least one, in column order, with its nonzero coefficient.
    """
    signs = {value > 0 for _, value in terms}
    if len(signs) == 1 and constant:
        sign = 1 if terms[0][1] > 0 else -1
        return f"{_sum([(name, sign * value) for name, value in terms], 0)} = {_sum([], -sign * constant)}"

    def preference(position: int) -> tuple[int, bool, int, int]:
        *others, moved = right_of(position)
        return sum(1 for value in others if value < 0), moved < 0, abs(terms[position][1]), position

    def right_of(position: int) -> list[int]:
        sign = -1 if terms[position][1] > 0 else 1
        others = [value for i, (_, value) in enumerate(terms) if i != position]
        return [sign * value for value in [*others, constant]]

    left = min(range(len(terms)), key=preference)
    *right, moved = right_of(left)
    names = [name for i, (name, _) in enumerate(terms) if i != left]
    name, value = terms[left]
    return f"{_sum([(name, abs(value))], 0)} = {_sum(list(zip(names, right, strict=True)), moved)}"


def _sum(terms: Sequence[_Term], constant: int) -> str:
    """Write a sum: plus columns, minus columns, the constant (first, if it saves a leading minus)."""
    ordered = [term for term in terms if term[1] > 0] + [term for term in terms if term[1] < 0]
    parts = [(value < 0, _product(name, abs(value))) for name, value in ordered]
    if constant or not parts:
        number = (constant < 0, _number(abs(constant)))
        leads_better = bool(parts) and parts[0][0] and constant > 0
        parts = [number, *parts] if leads_better else [*parts, number]
    (first_minus, first), *rest = parts
    return ("-" if first_minus else "") + first + "".join(f" {'-' if m else '+'} {text}" for m, text in rest)


def _product(name: str, factor: int) -> str:
    return name if factor == 1 else f"{_number(factor)} {name}"


def _number(value: int) -> str:
    return str(value) if value.bit_length() <= _LONGEST_WRITTEN else f"(about 2^{value.bit_length() - 1})"
