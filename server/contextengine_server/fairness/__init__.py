"""Who of several is served next, and who of them holds how much. Pure."""
