"""The jobs of a lent model and what is said of them; shared by both ways to lend."""

from __future__ import annotations

import logging
import time

from .types import AttachRequest, AttachResponse

Job = AttachResponse.Job
Completion = AttachRequest.Completion

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
"""Between two streams: three times as long after each that did not get through."""
OFTEN_S, SELDOM_S = 1.0, 20.0
"""A lease is extended after a third of its time, within these bounds: the clocks of two machines
differ."""

log = logging.getLogger("contextengine")


def keep_every(job: Job) -> float:
    """After how many seconds a job's lease is to be extended."""
    return min(
        max((job.lease_expire_time.ToNanoseconds() / 1e9 - time.time()) / 3, OFTEN_S), SELDOM_S
    )


def kept(job: Job) -> AttachRequest:
    """Still working on it."""
    return AttachRequest(
        keep_lease=AttachRequest.KeepLease(job_id=job.job_id, lease_id=job.lease_id)
    )


def completed(job: Job, answer: str | Completion) -> AttachRequest:
    """The answer to a job: a text, or a completion that lacks no more than its ids."""
    completion = Completion(text=answer) if isinstance(answer, str) else answer
    request = AttachRequest(completion=completion)
    request.completion.job_id, request.completion.lease_id = job.job_id, job.lease_id
    return request


def failed(job: Job, error: Exception) -> AttachRequest:
    """The answer where the model failed. What the error says stays here."""
    log.warning("the lent model failed on job %s", job.job_id, exc_info=error)
    return completed(job, Completion(error="model_failed", retryable=True))
