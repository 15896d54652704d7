"""The soak plays every session, at every budget, with another life of the server between every two
calls. Set CONTEXTENGINE_ALL_SESSIONS to nothing for the samples that the quick tests play."""

import os

os.environ.setdefault("CONTEXTENGINE_ALL_SESSIONS", "1")
