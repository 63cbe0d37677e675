"""The graphical model: factors, junction tree, belief propagation, inference from noisy marginals."""
