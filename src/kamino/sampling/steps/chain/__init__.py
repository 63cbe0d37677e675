"""Chain: a column that never falls, or never rises, with another."""
