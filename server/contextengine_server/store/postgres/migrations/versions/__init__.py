"""One module a released schema, oldest first."""
