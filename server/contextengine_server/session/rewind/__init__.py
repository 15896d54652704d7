"""Rewinds: what leaves a view, and what is left of it."""
