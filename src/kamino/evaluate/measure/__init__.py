"""How two tables are compared: distances, queries, ranks, violations."""
