"""The bench of recall: what of a long session is still in the context, what a search brings back,
and how much of it is cached."""
