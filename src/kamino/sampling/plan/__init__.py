"""The plan: in which order attributes are drawn, and by which step. Reads no table."""
