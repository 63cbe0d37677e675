"""Numbers about tables, and their rendering. Everything here reads the table as its owner does: it is not private."""
