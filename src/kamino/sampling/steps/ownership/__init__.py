"""Ownership: each value of an attribute belongs to one value of another."""
