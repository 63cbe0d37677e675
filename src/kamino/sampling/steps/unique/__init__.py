"""Unique: no value twice."""
