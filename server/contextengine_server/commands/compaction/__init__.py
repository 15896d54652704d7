"""The calls that compact."""
