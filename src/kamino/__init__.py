"""Kamino: differentially private synthetic tables that keep your constraints."""

__version__ = "0.1.0"
