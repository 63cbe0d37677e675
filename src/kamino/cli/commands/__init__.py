"""The commands, each a function of its name in a module of its name."""
