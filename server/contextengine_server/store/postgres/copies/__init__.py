"""Copying into and out of a database of PostgreSQL."""
