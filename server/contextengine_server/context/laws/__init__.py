"""The twelve laws, a module each. Where two pull apart, the lower number wins.

Laws 1 to 8 are checked on every plan, in production too: `violations` in `context.laws.check`. Laws
9 to 12 are held by tests over the functions of their modules.
"""
