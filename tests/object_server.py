"""A server of the tests' own that speaks S3, on loopback; what it holds is in memory."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import boto3
import pytest
from botocore.config import Config
from moto.server import ThreadedMotoServer

KEY, SECRET, REGION = "key-of-the-tests", "secret-of-the-tests", "us-east-1"


class ObjectServer:
    """Serves S3, can be stopped, and started again at the same port with what it had."""

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._port = 0
        self._server: ThreadedMotoServer | None = None
        self.start()

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Begins to answer."""
        self._server = ThreadedMotoServer("127.0.0.1", self._port, verbose=False)
        self._server.start()
        _, self._port = self._server.get_host_and_port()

    def stop(self) -> None:
        """Nobody answers at its address any more."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def bucket(self, name: str) -> Bucket:
        """A new bucket."""
        made = Bucket(self.endpoint, name)
        made.client.create_bucket(Bucket=name)
        return made


class Bucket:
    """A bucket, seen from outside the service."""

    def __init__(self, endpoint: str, name: str) -> None:
        self.name, self.endpoint = name, endpoint
        self.client: Any = boto3.client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name=REGION,
            config=Config(retries={"max_attempts": 1}, connect_timeout=5, read_timeout=10),
        )

    @property
    def settings(self) -> dict[str, Any]:
        """What a server is told of it."""
        return {
            "archive.url": f"s3://{self.name}/cold",
            "archive.endpoint": self.endpoint,
            "archive.region": REGION,
            "archive.timeout": "2s",
        }

    def names(self) -> list[str]:
        """The names of all objects."""
        found = self.client.list_objects_v2(Bucket=self.name)
        return [one["Key"] for one in found.get("Contents", ())]

    def read(self, name: str) -> bytes:
        """An object's bytes."""
        body: bytes = self.client.get_object(Bucket=self.name, Key=name)["Body"].read()
        return body

    def write(self, name: str, data: bytes) -> None:
        """Puts other bytes in an object's place."""
        self.client.put_object(Bucket=self.name, Key=name, Body=data)

    def erase(self, name: str) -> None:
        """Takes an object away."""
        self.client.delete_object(Bucket=self.name, Key=name)


@contextmanager
def object_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    """A server, and credentials for it in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    server = ObjectServer()
    try:
        yield server
    finally:
        with suppress(Exception):
            server.stop()
