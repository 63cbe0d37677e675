"""Soft constraints: their weights, prices and rates."""
