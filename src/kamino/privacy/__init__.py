"""Budget, events, ledger, mechanisms and accounting: the one gate from private to public."""
