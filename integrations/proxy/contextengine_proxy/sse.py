"""Server-sent events out of bytes, as they come (WHATWG HTML, 9.2.6). Pure."""

from __future__ import annotations

from collections.abc import Iterator


class Events:
    """The data of each event. What an event is called or numbered is not looked at."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def take(self, chunk: bytes) -> Iterator[bytes]:
        """The events that are whole with these bytes."""
        text = self._rest + chunk
        # What ends in a carriage return may go on with its line feed.
        held = b"\r" if text.endswith(b"\r") else b""
        lines = text[: len(text) - len(held)].splitlines(keepends=True)
        begun = lines.pop() if lines and not lines[-1].endswith((b"\n", b"\r")) else b""
        self._rest = begun + held
        for line in lines:
            line = line.rstrip(b"\r\n")
            if line:
                name, _, value = line.partition(b":")
                if name == b"data":
                    self._data.append(value.removeprefix(b" "))
            elif self._data:
                yield b"\n".join(self._data)
                self._data = []
