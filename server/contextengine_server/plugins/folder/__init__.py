"""Plugins in a directory: folders with a `plugin.yaml` and a package (docs/plugins.md)."""
