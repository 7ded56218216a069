"""What has been spent, on whom, and the files that releases are kept in."""

from privspan.ledger.accounts import Account, Entry
from privspan.ledger.ledger import DamagedLedgerError, Ledger, OverspendError, Page, Spending

__all__ = ["Account", "DamagedLedgerError", "Entry", "Ledger", "OverspendError", "Page", "Spending"]
