"""The paper's experiments: one module for each, all from one store of synthesized tables."""
