"""How many of the rules that people have written are expressed and imported, each shown by two tables."""
