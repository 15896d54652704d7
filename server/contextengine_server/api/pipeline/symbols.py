"""Which file declares a symbol, as reflection asks it: an rpc is a symbol too."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FileDescriptor


class Symbols:
    """The default pool of descriptors, in which rpcs are found as well.

    The protocol of reflection has `package.Service.Rpc` among its symbols, and ghz asks by nothing
    else; protobuf's own pool looks for services, messages, enums and fields only.
    """

    def __init__(self) -> None:
        self._pool = descriptor_pool.Default()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def FindFileContainingSymbol(self, symbol: str) -> FileDescriptor:
        """The file that declares the symbol. Raises KeyError where none does."""
        try:
            return self._pool.FindFileContainingSymbol(symbol)
        except KeyError:
            return self._pool.FindMethodByName(symbol).containing_service.file
