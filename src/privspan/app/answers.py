"""What a person has answered, step by step, as values; what the library takes follows from them.

Every answer is public: names, types, declared bounds and categories, budgets.  Nothing here has seen a cell.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from privspan._lib.errors import ParameterError
from privspan._lib.rounding import down
from privspan._lib.strict_json import fields, flag, listed, mapping, one_of, optional, text, whole
from privspan._lib.typed import decimal_of
from privspan.rows import Column, Schema

Use: TypeAlias = Literal["number", "boolean", "category", "list", "person", "skip"]
HowMany: TypeAlias = Literal["count", "share", "auto"]


@dataclass(frozen=True)
class TableAnswer:
    """Which file, below the folder, and how it is written if it is text."""

    file: str
    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    quoted_newlines: bool = False
    made_up: bool = False  # whether it is the example, which is told on every page

    @property
    def form(self) -> Schema:
        """What a schema says of the file as a whole."""
        how = {"decimal": self.decimal, "encoding": self.encoding, "quoted_newlines": self.quoted_newlines}
        return Schema(separator=self.separator, **how)  # type: ignore[arg-type]


@dataclass(frozen=True)
class ColumnAnswer:
    """What is declared of a column."""

    name: str
    use: Use
    words: tuple[str, ...] = ()  # of a category
    low: str | None = None  # public bounds, as they were typed
    high: str | None = None
    width: int | None = None  # of lists

    @property
    def column(self) -> Column:
        """The same in a schema; whose the rows are is said elsewhere in it."""
        if self.use == "category":
            return Column("category", categories=self.words)
        if self.use == "list":
            return Column("list", self.width)
        return Column("skip" if self.use == "person" else self.use, bounds=self.bounds)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Its public bounds, if it is a number and has them."""
        if self.use != "number" or self.low is None or self.high is None:
            return None
        return float(self.low), float(self.high)


@dataclass(frozen=True)
class Question:
    """What is to be learnt, and what the report is to say of it."""

    how_many: HowMany = "count"
    k: int = 2
    share: str = "0.8"  # of the variance, as it was typed
    scale: bool = True
    max_rows: int = 8  # of a person
    by: str = ""
    purpose: str = ""
    reviewed_by: str = ""

    @property
    def components(self) -> int | float | Literal["auto"]:
        """The number of components as `private_pca` takes it."""
        known: Mapping[str, int | float | Literal["auto"]]
        known = {"count": self.k, "share": float(self.share), "auto": "auto"}
        return known[self.how_many]

    @property
    def in_words(self) -> str:
        """The number of components, for a sentence."""
        if self.how_many == "count":
            return f"{self.k} component{'s' * (self.k != 1)}"
        if self.how_many == "share":
            return f"as many components as hold {float(self.share):.0%} of the variance"
        return "as many components as stand out"


@dataclass(frozen=True)
class Price:
    """What a release may cost, and what all of them together may, as decimals."""

    epsilon: Decimal = Decimal(1)
    delta: Decimal = Decimal("1e-6")
    limit_epsilon: Decimal | None = None
    limit_delta: Decimal | None = None

    @property
    def floats(self) -> tuple[float, float]:
        """Epsilon and delta as the private step spends them: no more than the decimals."""
        return down(Fraction(self.epsilon)), down(Fraction(self.delta))


@dataclass(frozen=True)
class Answers:
    """All of them; None where a step has not been answered."""

    table: TableAnswer | None = None
    columns: tuple[ColumnAnswer, ...] | None = None
    question: Question | None = None
    price: Price | None = None

    @property
    def asked(self) -> tuple[Question, Price]:
        """What is wanted, and what it may cost, once both have been said."""
        assert self.question is not None
        assert self.price is not None
        return self.question, self.price

    @property
    def person(self) -> str | None:
        """The column with the person ids, if people have several rows."""
        return next((one.name for one in self.columns or () if one.use == "person"), None)

    @property
    def schema(self) -> Schema:
        """What is declared about the file."""
        form = Schema() if self.table is None else self.table.form
        if self.columns is None:
            return form
        return form.but(columns={one.name: one.column for one in self.columns}, person=self.person)

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """The public bounds of columns."""
        return {one.name: one.bounds for one in self.columns or () if one.bounds is not None}

    @property
    def made_up(self) -> bool:
        """Whether the table is the example."""
        return self.table is not None and self.table.made_up

    def of_table(self, table: TableAnswer) -> Answers:
        """Return answers for another table: what was said of the columns of the last one is forgotten."""
        return replace(self, table=table) if table == self.table else Answers(table=table)

    # ---- On disk, beside the release -----------------------------------------------------------------------------

    def to_json(self) -> dict[str, object]:
        """Return them as JSON would have them; decimals as text."""
        made = asdict(self)
        if self.price is not None:
            made["price"] = {name: None if cost is None else str(cost) for name, cost in vars(self.price).items()}
        return made

    @classmethod
    def from_json(cls, value: object) -> Answers:
        """Read what `to_json` wrote; ``ValueError`` for anything else."""
        found = fields(value, table=mapping, columns=listed(mapping), question=mapping, price=mapping)
        words = {"by": text, "purpose": text, "reviewed_by": text}
        asked = fields(
            found["question"], how_many=one_of(get_args(HowMany)), k=whole(1), share=text, scale=flag,
            max_rows=whole(1), **words,
        )  # fmt: skip
        table = fields(
            found["table"], file=text, separator=optional(text), decimal=text, encoding=text, quoted_newlines=flag,
            made_up=flag,
        )  # fmt: skip
        columns = tuple(_column(one) for one in found["columns"])
        return cls(TableAnswer(**table), columns, Question(**asked), _price(found["price"]))


def _price(value: object) -> Price:
    limits = {"limit_epsilon": optional(text), "limit_delta": optional(text)}
    found = fields(value, epsilon=text, delta=text, **limits)
    amounts = {name: None if typed is None else decimal_of(typed) for name, typed in found.items()}
    epsilon, delta = amounts.pop("epsilon"), amounts.pop("delta")
    if epsilon is None or delta is None:
        raise ValueError("the budget is no number")
    return Price(epsilon, delta, **amounts)


def _column(value: object) -> ColumnAnswer:
    kinds = {"name": text, "use": one_of(get_args(Use)), "words": listed(text)}
    found = fields(value, **kinds, low=optional(text), high=optional(text), width=optional(whole(1)))
    return ColumnAnswer(**{**found, "words": tuple(found["words"])})


def words_typed(typed: str) -> tuple[str, ...]:
    """Return the words of a list with commas or one a line; one that holds a comma stands in double quotes."""
    lines = csv.reader(typed.splitlines(), skipinitialspace=True)
    return tuple(word.strip() for line in lines for word in line if word.strip())


def words_written(words: Sequence[str]) -> str:
    """Return a list of words as `words_typed` reads it."""
    quoted = (f'"{word.replace(chr(34), chr(34) * 2)}"' if set(word) & set('",') else word for word in words)
    return ", ".join(quoted)


def answers_of(schema: Schema, names: Sequence[str], columns: Sequence[ColumnAnswer]) -> tuple[ColumnAnswer, ...]:
    """Return what a schema file says of these columns; bounds stay as they are where it names none."""
    unknown = [name for name in schema.columns or {} if name not in names]
    if unknown:
        raise ParameterError("The schema declares {name!r}, and the table has no such column.", name=unknown[0])
    if schema.person is not None and schema.person not in names:
        raise ParameterError(
            "The schema names {name!r} for the persons, and there is no such column.", name=schema.person
        )
    found = []
    for one in columns:
        said = None if schema.columns is None else schema.columns.get(one.name, Column("skip"))
        new = one if said is None else replace(one, use=_use(said), words=(), width=said.width)
        if said is not None and said.categories is not None:
            new = replace(new, words=tuple(map(str, said.categories)))
        if said is not None and said.bounds is not None:
            low, high = (repr(end).removesuffix(".0") for end in said.bounds)
            new = replace(new, low=low, high=high)
        if one.name == schema.person:
            new = replace(new, use="person", words=())
        found.append(new)
    return tuple(found)


def _use(column: Column) -> Use:
    known: Mapping[str, Use] = {"number": "number", "boolean": "boolean", "category": "category", "list": "list"}
    return known.get(column.type, "skip")
