"""The command line of what was answered, and a Python script that does the same.

The app runs the command and nothing else, so what it shows is what it does.  Paths are relative to the folder of the
app: the command can be typed there again, with other names for what it writes.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from pprint import pformat

from privspan.app.answers import Answers, Price
from privspan.rows.files.schema import schema_text

PROGRAM = (sys.executable, "-P", "-m", "privspan")
"""What ``privspan`` is here; with -P no module of the folder of the data can come in its way."""

_HOW = "Types as they were declared in `privspan app`: a declaration, not read off the rows."


@dataclass(frozen=True)
class Places:
    """Where a release reads from and writes to, relative to the folder of the app."""

    table: str
    folder: str  # of the release
    ledger: str

    def file(self, name: str) -> str:
        """Return the path of a file of the release."""
        return f"{self.folder}/{name}"


def fit_command(answers: Answers, places: Places, into: str | None = None) -> list[str]:
    """Return the arguments of ``privspan`` that learn what was asked for, and write into its folder or another."""
    question, price = answers.asked
    words = ["fit", _argument(places.table), "-k", str(question.components), *_budget(price)]
    words += ["--schema", _argument(places.file("schema.toml"))]
    words += ["--scale"] if question.scale else []
    words += ["--max-rows", str(question.max_rows)] if answers.person is not None else []
    for flag, text in (
        ("--by", question.by),
        ("--purpose", question.purpose),
        ("--reviewed-by", question.reviewed_by),
    ):
        words += [f"{flag}={text}"] if text else []
    words += ["--ledger", _argument(places.ledger), *_limits(price)]
    made = [f"{places.folder if into is None else into}/{name}" for name in ("release.npz", "report.html")]
    return [*words, "-o", _argument(made[0]), "--report", _argument(made[1])]


def map_command(answers: Answers, places: Places, release: str, into: str | None = None) -> list[str]:
    """Return the arguments of ``privspan`` that make a map of the scores of a release."""
    price = answers.price
    assert price is not None
    words = ["score-map", _argument(release), _argument(places.table), *_budget(price)]
    words += ["--schema", _argument(places.file("schema.toml")), "--ledger", _argument(places.ledger)]
    made = [f"{places.folder if into is None else into}/{name}" for name in ("map.json", "map.svg")]
    return [*words, "-o", _argument(made[0]), "--plot", _argument(made[1])]


def shown(words: Sequence[str]) -> str:
    """Return a command as it is typed into a terminal."""
    return shlex.join(["privspan", *words])


def _budget(price: Price) -> list[str]:
    return ["--epsilon", str(price.epsilon), "--delta", str(price.delta)]


def _limits(price: Price) -> list[str]:
    given = {"--limit-epsilon": price.limit_epsilon, "--limit-delta": price.limit_delta}
    return [word for flag, limit in given.items() if limit is not None for word in (flag, str(limit))]


def _argument(path: str) -> str:
    """Return a path that no program takes for an option."""
    return f"./{path}" if path.startswith("-") or ":" in path.partition("/")[0] else path


def schema_file(answers: Answers) -> str:
    """Return the text of the schema file."""
    return schema_text(answers.schema, {}, (_HOW,))


_SCRIPT = '''"""What `privspan app` was asked for, in Python. Every run of this spends the budget again."""

from pathlib import Path

import privspan as ps

table = Path({table!r})
rows = ps.rows.open_rows(table, schema={schema!r})
account = ps.ledger.Ledger({ledger!r}).page(str(table.resolve()){limits})
release = ps.private_pca(
    rows,
    {k!r},
{options}    ledger=account,
)
print(release)
if not release.abstained:
    release.save("release.npz")
    ps.report.write_report("report.html", release)
'''


def script(answers: Answers, places: Places) -> str:
    """Return a Python program that learns the same: with fresh noise, at the same cost once more."""
    question, price = answers.asked
    options: dict[str, object] = dict(zip(("epsilon", "delta"), price.floats, strict=True))
    options |= {"scale": True} if question.scale else {}
    options |= {"max_rows": question.max_rows} if answers.person is not None else {}
    limits = (("limit_epsilon", price.limit_epsilon), ("limit_delta", price.limit_delta))
    return _SCRIPT.format(
        table=places.table,
        schema=places.file("schema.toml"),
        ledger=places.ledger,
        k=question.components,
        limits="".join(f", {name}={str(limit)!r}" for name, limit in limits if limit is not None),
        options="".join(f"    {name}={pformat(value, width=100)},\n" for name, value in options.items()),
    )


def relative_to(path: Path, root: Path) -> str:
    """Return a path as the command names it: below the folder by its name there, elsewhere in full."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
