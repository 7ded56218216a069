"""Rooms above are handed in by the package."""

import pytest

import privspan
from privspan._lib import above


def test_the_package_hands_in_what_lower_rooms_ask_for():
    assert above.ledgers() is privspan.ledger
    assert above.release_files().save_release is privspan.ledger.release_file.save_release
    with pytest.raises(KeyError):
        above.tables_of("nobody")
