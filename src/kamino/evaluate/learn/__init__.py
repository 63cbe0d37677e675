"""Training classifiers on one table and testing them on another."""
