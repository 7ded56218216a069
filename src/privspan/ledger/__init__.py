"""Records of what has been spent on which data, and the files of releases."""

from privspan.ledger.accounts import Account, Entry, Pot
from privspan.ledger.file import DamagedLedgerError, LockedLedgerError
from privspan.ledger.ledger import Ledger, Page, Spending
from privspan.ledger.rules import OverspendError

__all__ = [
    "Account",
    "DamagedLedgerError",
    "Entry",
    "Ledger",
    "LockedLedgerError",
    "OverspendError",
    "Page",
    "Pot",
    "Spending",
]
