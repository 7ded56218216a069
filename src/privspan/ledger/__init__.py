"""What has been spent, on whom, and the files that releases are kept in."""

from privspan.ledger.ledger import Account, DamagedLedgerError, Entry, Ledger, OverspendError, Spending

__all__ = ["Account", "DamagedLedgerError", "Entry", "Ledger", "OverspendError", "Spending"]
