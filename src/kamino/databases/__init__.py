"""Several tables under one promise: families of rows, made from one root table and all that hangs on it."""
