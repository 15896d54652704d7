"""Drilling back into what an assembly does not show: search, inspect, expand, and the index that
search looks into."""
