"""The engine passes the suite that comes with contextengine."""

from newest_steps import ENGINE

from contextengine_server.testing.engine import EngineSuite


class TestNewestSteps(EngineSuite):
    registration = ENGINE
