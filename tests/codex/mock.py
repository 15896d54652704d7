"""The Responses API on loopback, as far as Codex needs it: keeps every request, answers what a test
says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


class ResponsesMock:
    """Answers `POST …/responses` with events. `answer` makes the output items of a request; by
    default a short text."""

    def __init__(self) -> None:
        self.requests: list[Json] = []
        self.answer: Callable[[Json], list[Json]] = lambda request: [
            said(f"answer {len(self.requests)}")
        ]
        self.used_tokens = 100
        """What each answer says that it took: from 90 % of the window on Codex compacts."""
        mock = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                mock.requests.append(body)
                reply = mock.events(body)
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def do_GET(self) -> None:
                self.send_response(404)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Nothing: tests look at the requests."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The base address that a provider is configured with."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        """Stops listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)

    def events(self, request: Json) -> bytes:
        """The stream that answers a request."""
        name = f"resp_{len(self.requests)}"
        usage = {
            "input_tokens": self.used_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": self.used_tokens + 1,
        }
        events: list[Json] = [{"type": "response.created", "response": {"id": name}}]
        events += [
            {"type": "response.output_item.done", "item": item} for item in self.answer(request)
        ]
        events.append({"type": "response.completed", "response": {"id": name, "usage": usage}})
        return "".join(
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events
        ).encode()


def said(text: str) -> Json:
    """A message of the model."""
    return {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "content": [{"type": "output_text", "text": text}],
    }


def plain(items: list[Json]) -> list[Json]:
    """Input items without what Codex adds for itself."""
    added = ("id", "internal_chat_message_metadata_passthrough", "status")
    return [{key: value for key, value in item.items() if key not in added} for item in items]


def texts(request: Json, role: str) -> list[str]:
    """The texts of a request's messages of one role, in order, each part its own."""
    return [
        part["text"]
        for item in request["input"]
        if item.get("type", "message") == "message" and item.get("role") == role
        for part in item["content"]
        if "text" in part
    ]
