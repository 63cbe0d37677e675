"""Between the tables that people see and the one table that a model sees: recodings, and the layout that they make."""
