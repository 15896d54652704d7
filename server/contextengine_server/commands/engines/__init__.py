"""The calls about engines."""
