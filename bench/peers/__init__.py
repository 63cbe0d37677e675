"""The comparison with other synthesizers: same table, budget and rows, one process each, judged alike."""
