"""`plugins`: engines in a directory, and whose code may run."""
