"""Messages and stubs of the package contextengine.v1."""
