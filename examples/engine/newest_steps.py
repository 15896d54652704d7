"""An engine of few words: the newest steps that fit, and what was evicted stays evicted."""

from pydantic import Field

from contextengine_server.config.schema import Whole
from contextengine_server.context.lawful import fitting, plan_of
from contextengine_server.context.plan import Declared, Plan
from contextengine_server.context.view import View
from contextengine_server.engines.base import BaseEngine
from contextengine_server.engines.options import Options
from contextengine_server.engines.registration import Registration


class NewestOptions(Options):
    keep_steps: Whole = Field(4, ge=1, le=50, description="The newest steps that stay verbatim.")


class NewestSteps(BaseEngine[NewestOptions]):
    id = "newest-steps"
    name = "The newest steps that fit"

    def __init__(self, options: NewestOptions) -> None:
        super().__init__(options)
        self.declared = Declared(tail_steps=options.keep_steps)

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        shown = fitting(view, budget - reserved, self.options.keep_steps)
        return plan_of(view, shown.ranges, shown.summaries, rule=shown.rule, over=shown.over)


ENGINE = Registration("newest-steps", NewestOptions, NewestSteps)
