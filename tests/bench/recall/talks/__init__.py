"""Talks that are made up: their facts are seeded, so that what is kept and found can be counted."""
