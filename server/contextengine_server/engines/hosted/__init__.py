"""Engines that were written for other hosts, hosted: they are asked to compact a list of messages,
and everything else is done for them (docs/plugins.md#engines-of-hermes)."""
