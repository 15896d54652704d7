"""The calls that drill back into history."""
