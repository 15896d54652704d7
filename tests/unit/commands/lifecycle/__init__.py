"""The calls about a session as a whole."""
