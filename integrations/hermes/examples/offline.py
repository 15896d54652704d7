"""A talk of forty turns as Hermes calls its context engine, without Hermes and without a key: its
loop and the model are a few lines of this file.

make run                                            # the service, in another terminal
python integrations/hermes/examples/offline.py
"""

from __future__ import annotations

import os
import uuid
from typing import Any

from contextengine import Client
from contextengine_hermes.conversation import Conversation

WINDOW = 16_000


def model(rows: list[dict[str, Any]]) -> str:
    """Answers with the number of messages that it sees."""
    told = sum(str(row["content"]).count("trust=untrusted") for row in rows)
    return f"I see {len(rows)} messages, {told} summaries among them. " + "So it goes. " * 40


def main() -> None:
    """Talks."""
    address = os.environ.get("CONTEXTENGINE_ADDRESS", "127.0.0.1:50051")
    with Client(address, breaker=True) as client:
        talk = Conversation(client, "hermes", f"offline-{uuid.uuid4()}")
        talk.begin(model="counting", window=WINDOW)
        rows: list[dict[str, Any]] = []
        for turn in range(40):
            rows.append({"role": "user", "content": f"Question {turn}: how goes it?"})
            talk.record(rows)  # before each request, so that the tools find it
            said = model(rows)
            rows.append({"role": "assistant", "content": said})
            print(turn, said.split(". ")[0])
            tokens = sum(len(str(row["content"])) for row in rows) // 4
            if talk.due(tokens).should_compact:
                made = talk.compact(rows, tokens=tokens, room=WINDOW // 4, focus="", force=False)
                rows = made.rows  # the next request shows it, and so it is kept
        talk.record(rows, ended=True)


if __name__ == "__main__":
    main()
