"""Projection: an assembly in the form that a harness or a provider speaks. Pure functions: equal
input, equal bytes.

`model.py` and `task.py` are what comes in, `projection.py` is what goes out. A target is a folder
that says one record (`target.py`), and `targets.py` is the table of them. Its renderer and its
validator know nothing of one another: the one is judged by the other. What the forms of providers
share stands beside the folders: pairs of calls and results, ids, fragments, the state of a
rendering.
"""
