"""A talk of forty turns through the proxy, without a key: the provider is a few lines of this file.

make run                                        # the service, in another terminal
python integrations/proxy/examples/offline.py
"""

from __future__ import annotations

import json
import os
import threading
import time
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import uvicorn

from contextengine import Client
from contextengine_proxy.application import Proxy, Settings
from contextengine_proxy.windows import Windows


class Provider(BaseHTTPRequestHandler):
    """Answers each request with the number of messages that it saw."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        seen = asked["messages"]
        told = sum("trust=untrusted" in str(message) for message in seen)
        words = f"I see {len(seen)} messages, {told} of them summaries. " + "So it goes. " * 40
        message = {"role": "assistant", "content": words}
        body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


def main() -> None:
    """Serves both, and talks."""
    provider = HTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    address = os.environ.get("CONTEXTENGINE_ADDRESS", "127.0.0.1:50051")
    settings = Settings(
        address=address,
        openai=f"http://127.0.0.1:{provider.server_port}",
        windows=Windows((("*", 8_000),)),
    )
    server = uvicorn.Server(uvicorn.Config(Proxy(settings).application, port=0, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    name = f"offline-{uuid.uuid4()}"
    kept = Client(address).session(agent_id="proxy", session_id=name)
    talk: list[dict[str, str]] = []
    for turn in range(40):
        talk.append({"role": "user", "content": f"Question {turn}: how goes it?"})
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/chat/completions",
            json.dumps({"model": "any", "messages": talk}).encode(),
            {"content-type": "application/json", "x-contextengine-session": name},
        )
        with urllib.request.urlopen(request) as reply:
            message = json.loads(reply.read())["choices"][0]["message"]
        talk.append(message)
        print(f"sent {len(talk) - 1:2} messages: {message['content'].split('. ')[0]}")
        while kept.status().jobs:  # it summarizes: a real model takes longer
            time.sleep(0.05)


if __name__ == "__main__":
    main()
