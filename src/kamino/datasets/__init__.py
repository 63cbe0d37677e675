"""Built-in tables, made by a generator from a seed."""
