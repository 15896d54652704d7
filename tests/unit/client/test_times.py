"""When messages were made of which their host says nothing."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from contextengine import assistant, user
from contextengine.times import timed

LONG_AGO = datetime(2020, 1, 2, tzinfo=UTC)


def test_what_follows_was_made_now_unless_its_host_knows_better() -> None:
    given = [user("one"), assistant("two"), user("three", timestamp=LONG_AGO)]
    before = time.time() - 1
    one, two, three = timed(given, 4)
    assert before <= one.timestamp.ToSeconds() <= time.time()
    assert one.timestamp == two.timestamp
    assert three.timestamp.ToDatetime(UTC) == LONG_AGO
    assert not given[0].HasField("timestamp"), "the host's own stay as they are"


def test_of_a_list_that_is_seen_for_the_first_time_only_a_beginning_is_of_now() -> None:
    assert all(message.HasField("timestamp") for message in timed([user("one")], 0))
    listed = [user("one"), assistant("two"), user("three")]
    assert not any(message.HasField("timestamp") for message in timed(listed, 0))
