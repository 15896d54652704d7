"""Generated code of the contextengine API; see `make proto`."""
