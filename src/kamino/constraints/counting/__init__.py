"""How often a table violates a constraint, exactly and without trying all pairs."""
