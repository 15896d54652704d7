"""Jobs and their results as they are stored."""

from __future__ import annotations

import orjson
from msgspec.structs import asdict

from contextengine_server.store.model_jobs import ModelJob
from contextengine_server.summarize.models.answers import MAX_ANSWER_CHARS
from contextengine_server.summarize.models.runtime import Completion, Work

MAX_WORD = 256
"""The characters of a model's name, or of a word for what happened, that are looked at."""


def encode(done: Completion) -> bytes:
    """A result. Texts are cut one character behind their limit: enough for whoever reads them to
    see that the limit was exceeded."""
    words = {
        name: getattr(done, name)[: MAX_WORD + 1] for name in ("model", "stop_reason", "error")
    }
    return orjson.dumps({**asdict(done), **words, "text": done.text[: MAX_ANSWER_CHARS + 1]})


def decode(result: bytes) -> Completion:
    """A result that was stored."""
    return Completion(**orjson.loads(result))


def bytes_of(work: Work) -> bytes:
    """What is to be done."""
    return orjson.dumps(asdict(work))


def work_of(job: ModelJob) -> Work:
    """What is to be done for a job."""
    return Work(**orjson.loads(job.work))
