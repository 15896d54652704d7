"""Settings from file, environment and flags; their documentation; checks; other hosts'
configuration made ours.

Nothing is imported here: `config.schema` is below the engines, whose options are declared with it,
and `config.settings` above them.
"""
