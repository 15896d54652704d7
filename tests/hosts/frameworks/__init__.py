"""Agents that are built with frameworks, each behind one interface, and what their model does."""
