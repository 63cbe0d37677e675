"""Events and their price."""
