"""How useful synthetic tables are, by an outside judge: what constraints cost, budgets, parts switched off, parity."""
