"""Terms: what is computed from the values of one row, exactly; sides of comparisons and right sides of derivations."""
