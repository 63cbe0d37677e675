"""A run as a program: stages that say what they will release, and then release exactly that."""
