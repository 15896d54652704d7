"""Every event there is, by name. docs/api.md and Watch in the protos list the same; ENGINE stands
for an engine's id."""

from __future__ import annotations

EVENTS = {
    "session:created": "The first write, or a spawn, made it.",
    "session:ingested": "Messages were stored; counts say how many.",
    "session:reset": "Its view is empty; the rows stay.",
    "session:rewound": "Messages left the view: the host undid, edited or branched.",
    "session:ended": "EndSession, or it was idle for too long. A later write reopens it.",
    "session:deleted": "It was erased, with everything derived from it.",
    "session:corrupt_row": (
        "Rows that were read are not what their hashes name: how many, how many of them are"
        " summaries, and the first sequence. Each is shown as a label; importing the session again"
        " mends a message, making it again a summary."
    ),
    "context:budget_computed": (
        "A list began anew (a new epoch), or did not fit: the budget in parts, and the verdict."
    ),
    "budget:refused": (
        "An Assemble was refused by the token guard: the scope, the tokens used, the cap, and about"
        " what the call would have taken."
    ),
    "context:evicted": (
        "A list began anew without its oldest history: the tokens left out, the first step shown,"
        " the rule."
    ),
    "context:masked": (
        "A list began anew with messages in other forms than they came in: how many, and the tokens"
        " that this took away."
    ),
    "context:overflow": (
        "A list did not fit although it is the smallest lawful one, or what comes back behind a"
        " summary had no room: the tokens, what there was room for, and the `recovery`: `compact`,"
        " or what was left out (`strip_files`, `remove_position1`, `remove_rehydration`)."
    ),
    "context:reread": (
        "The model called a tool as it had before: how many such calls its message has, and the"
        " tools."
    ),
    "context:rehydrated": (
        "A list began anew with what came back behind a summary: how many sections of the"
        " workspace's files and how many files, their tokens, and what had no room (`stripped`)."
    ),
    "context:ENGINE_compacted": (
        "A summary was committed: tokens before and after, messages, depth, who wrote it."
    ),
    "context:summary_remade": (
        "A summary was made again in the place of one by another, or of one that quoted private"
        " reasoning: which, who wrote it before and now, tokens before and after."
    ),
    "context:ENGINE_degraded": (
        "A summary is by another than was asked first. Its `reason`: `breaker_open`, `spend_cap`,"
        " `summarizer_fallback` or `summarizers_exhausted`."
    ),
    "context:summary_language_mismatch": (
        "A summary is in another language than the user writes in."
    ),
    "context:compaction_undone": "Compact took summaries back.",
    "context:ENGINE_expanded": (
        "A tool of recall answered: which, how much it brought back, and how long that took."
    ),
    "context:integrity": (
        "Doctor looked at the session's rows: issues found, and how many were mended."
    ),
    "memory:found": "Facts of the session were found and are remembered: how many, by kind.",
    "background:started": "A job began: its kind, and which attempt it is.",
    "background:ended": (
        "A job ended. Its `outcome`: `done`, `more` (there is more to do), `failed` or `cancelled`."
    ),
    "engine:assigned": "An operator chose an engine or options.",
    "quota:set": "The server's owner set or removed what the tenant may hold at once.",
    "engine:failed": "An engine threw or broke a law: at which operation, and how.",
    "subagent:prepared": (
        "A child was made; its parent is in the attributes of this and the following."
    ),
    "subagent:started": "The child is there: Bootstrap brought its token.",
    "subagent:rolled_back": "The spawn was taken back.",
    "subagent:ended": "The child's work is over.",
    "subagent:expired": "The child outlived its ttl.",
    "watch:gap": "Events were missed: those behind it are the oldest still held.",
}
