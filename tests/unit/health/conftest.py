"""What the tests of health share with those of commands."""

from tests.unit.commands.conftest import rows

__all__ = ["rows"]
