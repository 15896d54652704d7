"""HTTP/2 and gRPC's framing, on a thread of its own."""

from collections.abc import Sequence

Metadata = Sequence[tuple[str, bytes]]

class Call:
    """A call of a client. What is asked of it after its end does nothing."""

    @property
    def key(self) -> int:
        """Names the call in events."""
    @property
    def path(self) -> str:
        """`/package.Service/Method`."""
    @property
    def peer(self) -> str:
        """The other end, for example `ipv4:127.0.0.1:40312`."""
    @property
    def timeout(self) -> float | None:
        """Seconds that the client waits from the beginning on. None: for good."""
    @property
    def certificate(self) -> bytes | None:
        """What the client showed, DER."""
    def metadata(self) -> tuple[tuple[str, str | bytes], ...]:
        """What the client sent along, keys in lower case."""
    def read(self) -> None:
        """Asks for the next message: MESSAGE or ENDED follows."""
    def send_headers(self, metadata: Metadata) -> None:
        """Tells the client that the call stands. Raises ValueError."""
    def write(self, message: bytes) -> None:
        """Sends a message: WRITTEN follows when the next may be."""
    def reply(self, message: bytes) -> None:
        """Sends the one message of a call, and ends it well."""
    def finish(self, code: int, text: str, metadata: Metadata) -> None:
        """Ends the call. Raises ValueError, and ends nothing then."""

class Front:
    """A server on one address."""

    def __init__(
        self,
        *,
        largest: int,
        streams: int,
        header_bytes: int,
        keepalive_s: float,
        keepalive_timeout_s: float,
    ) -> None:
        """`largest`: bytes of the largest message; `streams`: calls of a connection at once."""
    def listen(self, address: str) -> int:
        """Listens and answers the port. Raises OSError."""
    def secure(self, chain: bytes, key: bytes, authorities: bytes | None = None) -> None:
        """Speaks TLS by a PEM chain and its PEM key from the next connection on; with authorities
        clients must show a certificate of theirs. Raises ValueError."""
    def start(self) -> None:
        """Begins to accept."""
    def fd(self) -> int:
        """Readable when there are events."""
    def take(self) -> list[tuple[int, object, object]]:
        """What has happened: (kind, the key of the call or, for BEGUN, the call, message)."""
    def stop(self) -> None:
        """Accepts no more and lets go of idle connections. STOPPED follows when all are gone."""
    def close(self) -> None:
        """Breaks what is left, and waits until it is."""
