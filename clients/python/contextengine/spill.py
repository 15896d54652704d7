"""The file that outlives a client: requests that could not be sent, one behind the other, each
behind its length."""

from __future__ import annotations

import os
from io import FileIO
from os import PathLike
from pathlib import Path

from google.protobuf.message import DecodeError

from .types import AfterTurnRequest


class SpillDamaged(ValueError):
    """A spill file that is not one, or was damaged. Move it away to go on without what it holds."""


def _own(path: str, flags: int) -> int:
    """Opens a file; one that is not there yet is for its owner's eyes alone: it holds what was
    said."""
    return os.open(path, flags, 0o600)


class Spill:
    """A spill file, open for appending. One client at a time."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = Path(path)
        self._file = FileIO(self._path, "a", opener=_own)

    def read(self) -> list[AfterTurnRequest]:
        """What the file holds. A last record that was cut off is taken away. Raises
        SpillDamaged."""
        data = self._path.read_bytes()
        requests, position = [], 0
        while (record := _record(data, position)) is not None:
            start, end = record
            try:
                requests.append(AfterTurnRequest.FromString(data[start:end]))
            except DecodeError:
                raise SpillDamaged(f"{self._path}: no request at byte {position}") from None
            position = end
        self._file.truncate(position)
        return requests

    def append(self, request: AfterTurnRequest) -> None:
        """Adds a request. It is on the disk when this returns. Raises OSError, and then changes
        nothing."""
        encoded = request.SerializeToString()
        record = memoryview(_varint(len(encoded)) + encoded)
        whole = os.fstat(self._file.fileno()).st_size
        try:
            while record:
                record = record[self._file.write(record) :]
            os.fsync(self._file.fileno())
        except OSError:
            # Behind half a record nothing could be read again.
            self._file.truncate(whole)
            raise

    def clear(self) -> None:
        """Leaves the file empty."""
        self._file.truncate(0)

    def close(self) -> None:
        """Closes the file. What it holds stays."""
        self._file.close()


def _record(data: bytes, position: int) -> tuple[int, int] | None:
    """Where the record at `position` begins behind its length, and where it ends. None: it is not
    whole."""
    length = shift = 0
    for start in range(position, min(position + 10, len(data))):
        length |= (data[start] & 0x7F) << shift
        shift += 7
        if data[start] < 0x80:
            end = start + 1 + length
            return (start + 1, end) if end <= len(data) else None
    return None


def _varint(number: int) -> bytes:
    """A length as protobuf's delimited form has it: seven bits a byte, the low ones first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
