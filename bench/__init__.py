"""Measurements: of speed, of the paper's experiments, and beside other synthesizers."""
