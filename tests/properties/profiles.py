"""How hard the properties look: the same examples in every run, unless HYPOTHESIS_PROFILE says
`explore`; `glance` is for who only wants to know whether something fails, and soon."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    "explore", settings.get_profile("steady"), derandomize=False, max_examples=2_000
)
settings.register_profile(
    "glance",
    settings.get_profile("steady"),
    max_examples=25,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
