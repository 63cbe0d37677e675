"""Rows that found no value, or break a constraint, give way to others."""
