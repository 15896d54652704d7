"""Summaries without any model: what the messages themselves said."""
