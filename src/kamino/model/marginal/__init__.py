"""The marginal backend: noisy marginals, and a graphical model that agrees with them."""
