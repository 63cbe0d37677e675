"""The mechanisms: the only code that turns private data into public data. One kind of release a file.

Each one validates what it was told (never the private values), charges the ledger, and only then looks at the
data and draws. They are called through `kamino.privacy.Gate`.
"""
