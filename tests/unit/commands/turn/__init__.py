"""The calls of a turn."""
