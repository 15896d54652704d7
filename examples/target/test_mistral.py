"""The target passes the suite that comes with contextengine."""

from contextengine_mistral import TARGET

from contextengine_server.testing.target import TargetSuite


class TestMistral(TargetSuite):
    target = TARGET
