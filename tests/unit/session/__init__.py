"""The session aggregate, alone and beside another server over the same store."""
