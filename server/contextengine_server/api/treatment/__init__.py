"""Sessions that are not kept as others are."""
