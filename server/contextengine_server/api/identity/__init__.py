"""Callers by what others vouch for: tokens that an issuer signed, and client certificates."""
