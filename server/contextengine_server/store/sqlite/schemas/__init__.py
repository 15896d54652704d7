"""The schema of a file: what is still to be done, and whether it is as it must be."""

from .catalogue import found, plan, wanted

__all__ = ["found", "plan", "wanted"]
