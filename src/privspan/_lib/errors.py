"""What this package says when it refuses something.

A parameter has one name in the functions, may have another in the estimators, and is a flag on the command line.
So a refusal holds a template and the facts that fill it:

    ParameterError("{k} must be at most the number of columns, {d}; got {got}.", d=d, got=k)

A name that is not among the facts is a parameter, and is shown in the words of whoever reads: `` `k` `` to a caller
of functions, `` `n_components` `` of an estimator, ``--k`` on the command line.  ``{k:"auto"}`` is a parameter with
the value that it is given.

Every text made here may be shown to anybody: facts are parameters, types, shapes and names, never a cell of a table.
An exception of any other class may quote data, and is shown by its class alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Vocabulary = Callable[[str, str], str]
"""What a parameter is called, given its name in the functions and the value to be named with it ("" if none)."""


def in_functions(name: str, value: str) -> str:
    """Return the name of a parameter as the functions call it."""
    return f"`{name}={value}`" if value else f"`{name}`"


class PrivspanError(Exception):
    """A refusal, in words that may be shown to anybody: they contain no value of a table."""

    vocabulary: Vocabulary = staticmethod(in_functions)

    def __init__(self, template: str, /, **facts: object) -> None:
        super().__init__(template)
        self.template, self.facts = template, facts

    def told(self, vocabulary: Vocabulary) -> str:
        """Return the message in the vocabulary of its reader: Python or command line."""
        return self.template.format_map(_Facts(self.facts, vocabulary))

    def __str__(self) -> str:
        return self.told(self.vocabulary)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class ParameterError(PrivspanError, ValueError):
    """A parameter has a value that is not possible, or not possible with the others."""


class ParameterTypeError(PrivspanError, TypeError):
    """A parameter is of a type that is not taken."""


class MissingPackageError(PrivspanError, ImportError):
    """A package that is needed for this is not installed, or too old."""


class Note(str):
    """A note of this package to an exception, fit for a user; those of other libraries may quote data."""

    __slots__ = ()


@dataclass(frozen=True)
class Parameter:
    """A fact that is itself a parameter, where a check does not know of which one it speaks."""

    name: str


class _Facts(dict[str, object]):
    def __init__(self, facts: dict[str, object], vocabulary: Vocabulary) -> None:
        super().__init__({name: _shown(fact, vocabulary) for name, fact in facts.items()})
        self._vocabulary = vocabulary

    def __missing__(self, name: str) -> _Named:
        return _Named(name, self._vocabulary)


@dataclass(frozen=True)
class _Named:
    name: str
    vocabulary: Vocabulary

    def __format__(self, value: str) -> str:
        return self.vocabulary(self.name, value)


def _shown(fact: object, vocabulary: Vocabulary) -> object:
    match fact:
        case Parameter():
            return _Named(fact.name, vocabulary)
        case PrivspanError():
            return fact.told(vocabulary)
    return fact
