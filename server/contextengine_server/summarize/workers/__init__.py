"""Processes for Python work that would hold up the event loop."""
