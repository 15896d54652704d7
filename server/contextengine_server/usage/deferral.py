"""Which definitions of tools a model sees: where all of them take too much of the window, those of
MCP servers stand behind one tool that finds them. Pure.

The share of the window, the messages in which a tool counts as used, and what is asked of the tool
are Comis's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

DISCOVERY = "discover_tools"
"""The name of the tool that finds the others."""

MAX_LISTED_CHARS = 2_000
"""How much of its description the names of tools may take."""


class OfferedTool(msgspec.Struct, frozen=True):
    """A definition that a caller sent."""

    name: str
    description: str
    server: str
    """The MCP server that it comes from; empty: none."""
    tokens: int
    """Of the whole definition, in the model's tokens."""
    index: int
    """Its place among those that were sent."""


class DeferralRules(msgspec.Struct, frozen=True):
    """When definitions are deferred, and which."""

    engines: tuple[str, ...] = ()
    """The engines that defer; `*`: every one."""
    window_share: float = 0.10
    """Of the window: definitions that take more are deferred."""
    recent_messages: int = 20
    """A tool that was called in at least so many of the newest messages stays."""
    never: tuple[str, ...] = ()
    """Tools that always stay."""
    always: tuple[str, ...] = ()
    """Tools that are always deferred, until they are found."""
    results: int = 10
    """The most tools that one search finds."""
    least_score: float = 0.8
    """A hit of a search in words is at least this share of the best one."""

    demote_after: int = 20
    """A tool that was found more turns ago, and not called lately, is deferred again; 0: never."""

    def keeps(self, found: int, now: int) -> bool:
        """Whether a tool that was found in one turn of the session is shown for that in another."""
        return not self.demote_after or now - found <= self.demote_after

    def recent_from(self, count: int) -> int:
        """The first of so many messages in which a tool counts as used, from 1. It moves in steps
        as long as the window is, so that what a model sees does not change with every message."""
        step = self.recent_messages
        return max(1, (count - step) // step * step + 1)


class ShownTools(msgspec.Struct, frozen=True):
    """What of the definitions is shown."""

    before: tuple[OfferedTool, ...]
    """In order, by name: what is never deferred."""
    behind: tuple[OfferedTool, ...]
    """What stands behind the tool that finds others: what it found, in the order in which it did,
    then what was used, by name."""
    deferred: tuple[OfferedTool, ...]
    """What is not shown, by name."""


def shown(
    rules: DeferralRules,
    tools: Sequence[OfferedTool],
    window: int,
    used: Collection[str],
    discovered: Sequence[str],
) -> ShownTools | None:
    """What is shown of the definitions; None where all are, as they came. `used`: names that were
    called lately; `discovered`: names that were found, the first one first."""
    large = sum(tool.tokens for tool in tools) > rules.window_share * window
    candidates = [
        tool
        for tool in tools
        if tool.name in rules.always or (large and tool.server and tool.name not in rules.never)
    ]
    candidates = [tool for tool in candidates if tool.name != DISCOVERY]
    places = {name: place for place, name in enumerate(discovered)}
    found = [tool for tool in candidates if tool.name in places]
    late = [
        tool
        for tool in candidates
        if tool.name not in places and tool.name in used and tool.name not in rules.always
    ]
    behind = (
        *sorted(found, key=lambda tool: (places[tool.name], tool.index)),
        *sorted(late, key=_by_name),
    )
    kept = {tool.index for tool in behind}
    deferred = sorted((tool for tool in candidates if tool.index not in kept), key=_by_name)
    if not deferred:
        return None
    apart = {tool.index for tool in candidates}
    before = sorted((tool for tool in tools if tool.index not in apart), key=_by_name)
    return ShownTools(tuple(before), behind, tuple(deferred))


def described(shown: ShownTools) -> str:
    """What a model reads of the tool that finds the others. It names all that may be deferred,
    found or not, so that it stays the same when one is found."""
    servers: dict[str, list[str]] = {}
    for tool in sorted((*shown.deferred, *shown.behind), key=_by_name):
        servers.setdefault(tool.server, []).append(tool.name)
    lines, left = [], MAX_LISTED_CHARS
    for server in sorted(servers):
        names = servers[server]
        listed = ", ".join(names)
        if len(listed) > left:
            listed = f"{len(names)} tools"
        left -= len(listed)
        lines.append(f"{server or 'others'}: {listed}")
    return (
        "Finds tools that can be called and whose definitions are not shown. Ask with words that"
        " say what is to be done, a tool's name, the beginning of names (mcp__server), a server's"
        " name, or select:name,name. What is found can be called from then on. There are, by"
        " server:\n" + "\n".join(lines)
    )


def server_of(name: str, server: str) -> str:
    """The MCP server of a tool, as it says or as its name does: `mcp__server__tool` or
    `mcp:server:tool`. Empty: none."""
    if server:
        return server
    for prefix, divider in (("mcp__", "__"), ("mcp:", ":")):
        if name.startswith(prefix):
            return name.removeprefix(prefix).partition(divider)[0] or "mcp"
    return ""


def _by_name(tool: OfferedTool) -> tuple[str, int]:
    return tool.name, tool.index
