"""From a fitted model to a written, counted and certified table."""
