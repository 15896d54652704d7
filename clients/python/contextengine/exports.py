"""Whether an export is whole."""

from __future__ import annotations

from hashlib import sha256

from contextengine.types import ExportResponse


class Tally:
    """Counts the parts of one export as they come, from a stream or a file, and holds them against
    its last part."""

    def __init__(self) -> None:
        self.messages = 0
        self._summaries = 0
        self._hashes = sha256()
        self._end: ExportResponse.End | None = None

    def add(self, part: ExportResponse) -> None:
        """The next part. Raises ValueError for one behind the last."""
        if self._end is not None:
            raise ValueError("something follows the end of the export")
        match part.WhichOneof("kind"):
            case "message":
                self.messages += 1
                self._hashes.update(part.message.content_hash)
            case "summary":
                self._summaries += 1
            case "end":
                self._end = part.end

    @property
    def ended(self) -> bool:
        """Whether the last part came."""
        return self._end is not None

    def check(self) -> None:
        """Raises ValueError where the parts are not those that the last one tells, or it did not
        come: the export was cut short, or its server is of a version that says none."""
        end = self._end
        if end is None:
            raise ValueError(
                f"the export ends after {self.messages} messages without its last part"
            )
        here = self.messages, self._summaries
        told = end.message_count, end.summary_count
        if here != told:
            raise ValueError(
                f"the export has {here[0]} messages and {here[1]} summaries, and its last part"
                f" tells of {told[0]} and {told[1]}"
            )
        if self._hashes.digest() != end.messages_sha256:
            raise ValueError("the messages of the export are not those that its last part tells of")
