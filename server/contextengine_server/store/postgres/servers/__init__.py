"""What several servers over one database share besides rows of sessions."""
