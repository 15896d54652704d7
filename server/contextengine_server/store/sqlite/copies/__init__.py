"""Copies of a database: made while a server writes to it, and put in its place again."""

from .copies import Copied, back_up, restore

__all__ = ["Copied", "back_up", "restore"]
