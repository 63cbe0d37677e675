"""Whether any table satisfies the hard constraints, and which rows do."""
