"""The calls about stored sessions."""
