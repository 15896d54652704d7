"""Encoded messages: what the core must know is read out of them once, and what is shown is encoded
once."""
