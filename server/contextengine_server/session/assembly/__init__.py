"""From a session to the context of one model call: budget, live list, plan, epoch, assembly."""
