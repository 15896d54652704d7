"""What is known of models by their names: window, longest output, and how their tokens compare with
ours.

The table is models.yaml. A factor is the tokens that a model's provider bills per token of the
reference encoding.

- OpenAI's two encodings differ by less than 1 % (cl100k_base makes 1.002 tokens for one of
  o200k_base on the airline transcripts in tests/data, 0.995 on the coding session), so their
  models' factor is 1.0 in either.
- Anthropic publishes no tokenizer. The factor is fitted to the one session in tests/data that
  carries bills, of claude-sonnet-4-5: 439 replies, their input, cache reads and cache writes added
  up, against the count of all messages before the reply (text, reasoning, names and arguments of
  calls, and MESSAGE_TOKENS each). The first reply, after 48 tokens of text, fixes what system
  prompt and tools cost, about 1,630 tokens; through that point the least squares give 1.22, and no
  later bill is more than 4 % above the line. tests/unit/tokens/test_models.py fits it again.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib import resources

import msgspec
import yaml
from msgspec.structs import replace


class ModelProfile(msgspec.Struct, frozen=True):
    """What is known of a model.

    `provider` is `openai`, `anthropic`, `google`, or empty; `encoding` is empty where it is not
    published. `window` and `max_output` are tokens of the model's own, None where not known.
    `factor` is the model's tokens per token of the reference encoding, 1.0 where nothing is known.
    """

    model: str
    provider: str = ""
    encoding: str = ""
    window: int | None = None
    max_output: int | None = None
    factor: float = 1.0
    least_cached: int = 1_024
    """The provider's cache keeps no shorter prefix of its tokens."""


@lru_cache(maxsize=256)
def profile(model: str) -> ModelProfile:
    """What is known of `model`; of an unknown one nothing, and its factor is 1.0. Never fails.

    Vendor prefixes, dates and versions do not matter:
    `us.anthropic.claude-sonnet-4-5-20250929-v1:0`, `openrouter/anthropic/claude-sonnet-4.5` and
    `claude-sonnet-4-5` are one model.
    """
    name = plain_name(model)
    known = next((row for row in _table() if _begins(name, row.model)), ModelProfile(model))
    return replace(known, model=model)


@cache
def _table() -> list[ModelProfile]:
    """The known models, each named by its prefix, the longest first."""
    text = resources.files(__package__).joinpath("models.yaml").read_text(encoding="utf-8")
    rows = [
        ModelProfile(plain_name(prefix), provider, **{**group.get("defaults", {}), **facts})
        for provider, group in yaml.safe_load(text).items()
        for prefix, facts in group["models"].items()
    ]
    return sorted(rows, key=lambda row: len(row.model), reverse=True)


def plain_name(model: str) -> str:
    """The model's own name: lower case, without what gateways put before it, points as dashes."""
    name = model.strip().lower().rsplit("/", 1)[-1]
    name = re.sub(r"^([a-z]+\.)*anthropic\.", "", name)
    return name.replace(".", "-")


def _begins(name: str, prefix: str) -> bool:
    """Whether `name` is `prefix`, or goes on with another word: `gpt-4-0613` is a `gpt-4`, `gpt-4o`
    is none."""
    return name.startswith(prefix) and not name[len(prefix) :][:1].isalnum()
