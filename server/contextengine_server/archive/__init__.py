"""The archive: sessions that nobody uses, in object storage (docs/archive.md)."""
