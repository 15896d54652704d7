"""The calls that run tools for the model."""
