"""Servicers, one per proto service, and what stands before each of their calls."""
