"""What the other services can be asked, a command for each of their calls."""

from __future__ import annotations

import msgspec

from .engines.assign import Assign
from .engines.doctor import Doctor
from .engines.get import GetEngine
from .engines.list import ListEngines
from .engines.quotas import Tenants
from .recall.expand import Expand
from .recall.inspect import Inspect
from .recall.search import Search
from .recall.search_memory import SearchMemory
from .sessions.delete import Delete
from .sessions.erase import Erase
from .sessions.export import Export
from .sessions.get import GetSession
from .sessions.import_ import Import
from .sessions.list import ListSessions
from .sessions.watch import Watch


class RecallCommands(msgspec.Struct, frozen=True):
    """Service Recall."""

    search: Search
    search_memory: SearchMemory
    inspect: Inspect
    expand: Expand


class SessionsCommands(msgspec.Struct, frozen=True):
    """Service Sessions."""

    list: ListSessions
    get: GetSession
    import_: Import
    export: Export
    delete: Delete
    erase: Erase
    watch: Watch


class EnginesCommands(msgspec.Struct, frozen=True):
    """Service Engines."""

    list: ListEngines
    get: GetEngine
    assign: Assign
    doctor: Doctor
    tenants: Tenants
