"""The calls about children."""
