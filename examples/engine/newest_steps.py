"""An engine of few words: the newest steps that fit, in blocks so that a prompt cache is of use."""

from pydantic import Field

from contextengine_server.config.schema import Whole
from contextengine_server.context.lawful import plan_of, short_tail, steady_cut
from contextengine_server.context.layout import everything, uncovered
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

    def plan(self, view: View, cell: int, reserved: int = 0) -> Plan:
        room = cell - reserved
        reached = steady_cut(view, cell, room)
        if not reached:
            return Plan(everything(view))
        tail = max(view.tail_from(self.options.keep_steps), view.raw_from)
        shown = uncovered(view, reached)
        if shown and shown[0][0] <= tail:
            return plan_of(view, shown, view.summaries, rule="the newest that fit")
        ranges, over = short_tail(view, room, tail)
        return plan_of(view, ranges, rule="the tail that fits", over=over)


ENGINE = Registration("newest-steps", NewestOptions, NewestSteps)
