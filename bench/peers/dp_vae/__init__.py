"""A small DP-VAE, made for this comparison only."""
