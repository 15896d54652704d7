"""Settings of how long what is stored stays, and where."""
