"""What an exception may say on a page."""

import errno

import pytest

from privspan._lib.errors import ParameterError
from privspan.app.words import told


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ParameterError("{k} must be at most {most}.", most=3), "Number of components must be at most 3."),
        (ParameterError("{epsilon} must be small."), "ε must be small."),
        (ParameterError("{scale:True} is needed."), "Standardising is needed."),
        (ParameterError('{k:"auto"} is needed.'), "Number of components auto is needed."),
        (ValueError("the cell 4711"), "Something unexpected happened (ValueError). Nothing was spent by it."),
        (MemoryError("4711"), "There is not enough memory for this table."),
        (OSError(errno.EACCES, "4711", "/home/4711"), "The system says: Permission denied."),
        (OSError("4711"), "Something unexpected happened (OSError). Nothing was spent by it."),
    ],
)
def test_refusals_are_told_in_words_and_others_by_their_kind(error: Exception, words: str) -> None:
    assert told(error) == words
