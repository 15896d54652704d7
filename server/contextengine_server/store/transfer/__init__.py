"""Copying a store into one of another kind, row by row, and comparing the two.

It reads what every kind keeps alike (`store.sql.schema`). What search looks in is not copied: it is
made again from the rows by whichever server opens the copy.
"""
