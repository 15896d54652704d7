"""The parts of the suite that are of several servers over one database."""
