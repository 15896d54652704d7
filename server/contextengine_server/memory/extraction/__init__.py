"""Facts found in what is said, by rules: no model, no network, the same at every run."""
