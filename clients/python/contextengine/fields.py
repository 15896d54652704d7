"""The optional arguments of each rpc, spelled once for both clients. Fields mean what the protos
say of them.

What an rpc requires is a parameter of its method; everything that may be left out is here, as a
typed keyword argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TypedDict

from google.protobuf.timestamp_pb2 import Timestamp

from . import types as t


class Call(TypedDict, total=False):
    """Arguments of every rpc."""

    timeout: float
    """The deadline in seconds. Absent: the client's."""


class Read(Call, total=False):
    """Arguments of an rpc that reads a session."""

    at_least_revision: int


class Status(Read, total=False):
    with_disk_bytes: bool


class Write(Call, total=False):
    """Arguments of an rpc that writes. `request_id` is set where it is absent and needed."""

    request_id: str


class Guarded(Write, total=False):
    """Arguments of an rpc that may insist on a revision."""

    expected_revision: int


class Bootstrap(Write, total=False):
    """Of BootstrapRequest."""

    host: t.HostInfo
    continues: t.SessionRef
    history: Sequence[t.Message]
    model: str
    provider: str
    window: int
    workspace_files: Sequence[t.WorkspaceFile]
    runtime_settings: t.RuntimeSettings
    spawn_token: str


class Assemble(Write, Read, total=False):
    """Of AssembleRequest, without what a session handle holds by itself."""

    ingest: Sequence[t.Message]
    live: t.LiveList
    budget: t.Budget
    model: str
    provider: str
    prompt: Sequence[t.Part]
    current_message_id: str
    current_token_count: int
    available_tools: Sequence[str]
    tools: Sequence[t.ToolDefinition]
    citations_mode: str
    channel_type: str
    preamble: t.Preamble
    workspace_files: Sequence[t.WorkspaceFile]
    memory_sections: Sequence[t.MemorySection]
    cache_retention: t.CacheRetention
    runtime_settings: t.RuntimeSettings
    prompt_cache: t.PromptCache
    explain: bool
    projection: t.ProjectionOptions
    objective: str


class Known(TypedDict, total=False):
    """What the caller holds of its last assembly."""

    known_context_hash: bytes
    known_epoch: str


class AssembleKnowing(Assemble, Known, total=False):
    """Of AssembleRequest."""


class Compact(Guarded, total=False):
    """Of CompactRequest."""

    target: t.CompactionTarget
    budget: t.Budget
    force: bool
    force_reason: str
    current_token_count: int
    focus: str
    live: t.LiveCompaction
    propose_only: bool
    return_list: bool
    undo_to_generation: int
    no_wait: bool
    runtime_settings: t.RuntimeSettings
    trigger: str
    redo: bool
    memory_context: str


class CommitCompaction(Call, total=False):
    """Of CommitCompactionRequest."""

    refuse_reason: str


class AfterTurn(Write, total=False):
    """Of AfterTurnRequest."""

    pre_prompt_message_count: int
    advancement_key: str
    usage: t.Usage
    is_heartbeat: bool
    budget: t.Budget
    auto_compaction_summary: str
    runtime_settings: t.RuntimeSettings
    prompt_cache: t.PromptCache
    current_token_count: int
    assembly_id: str
    other_tokens: int


class Recorded(Call, total=False):
    """Of RecordHostChangeRequest. `change_id` is set where it is absent."""

    change_id: str


class RecordHostChange(Recorded, total=False):
    """Of RecordHostChangeRequest: exactly one of the changes."""

    rewind: t.RecordHostChangeRequest.Rewind
    compacted: t.RecordHostChangeRequest.HostCompaction
    native_compacted: t.RecordHostChangeRequest.NativeCompaction


class Maintain(Call, total=False):
    """Of MaintainRequest."""

    reason: str
    lend: t.AttachRequest.Hello
    completions: Sequence[t.AttachRequest.Completion]
    wait: timedelta


class ReportUsage(Write, total=False):
    """Of ReportUsageRequest."""

    assembly_id: str
    usage: t.Usage
    model: str
    overflow: t.ReportUsageRequest.Overflow
    stop_reason: str
    other_tokens: int


class ShouldCompact(Call, total=False):
    """Of ShouldCompactRequest."""

    prompt_tokens: int
    budget: t.Budget
    live: t.LiveCompaction
    preflight: bool


class UpdateModel(Write, total=False):
    """Of UpdateModelRequest."""

    model: str
    provider: str
    window: int
    max_output_tokens: int


class Spawned(Call, total=False):
    """Arguments of an rpc that a child calls to read its parent."""

    spawn_token: str


class CallTool(Spawned, total=False):
    """Of CallToolRequest."""

    arguments_json: bytes
    tools: Sequence[t.ToolDefinition]


class PrepareSubagentSpawn(Write, total=False):
    """Of PrepareSubagentSpawnRequest."""

    context_mode: t.ContextMode
    parent_transcript: t.TranscriptRef
    child_transcript: t.TranscriptRef
    ttl: timedelta
    objective: str
    grant: t.RecallGrant
    fork_after_sequence: int
    fork_after_message_id: str


class EndSubagent(Spawned, total=False):
    """Of EndSubagentRequest."""

    reason: t.SubagentEndReason


class EndSession(Guarded, total=False):
    """Of EndSessionRequest."""

    reason: str


class SessionsList(Call, total=False):
    """Of SessionsListRequest."""

    agent_id: str
    session_key: str
    page_size: int
    page_token: str


class Import(Call, total=False):
    """Of ImportRequest.Header. `message_count` is what is sent where it is absent."""

    model: str
    provider: str
    message_count: int


class Export(Read, total=False):
    """Of ExportRequest."""

    as_of_revision: int
    include_retired: bool


class Delete(Guarded, total=False):
    """Of DeleteRequest."""

    cascade: bool
    everything_of: t.DeleteRequest.Everything


class Resume(Call, total=False):
    """Of WatchRequest, without what a session handle holds by itself."""

    resume_position: str
    name_prefixes: Sequence[str]


class Watch(Resume, total=False):
    """Of WatchRequest."""

    agent_id: str
    session_id: str


class EnginesGet(Call, total=False):
    """Of EnginesGetRequest."""

    engine_id: str
    session: t.SessionRef


class Doctor(Call, total=False):
    """Of DoctorRequest."""

    session: t.SessionRef
    repair: bool
    clear_failures: bool


class Assign(Write, total=False):
    """Of AssignRequest."""

    scope: t.SessionRef
    engine_id: str
    options_json: bytes
    clear: bool
    match: t.SessionMatch


class ListQuotas(Call, total=False):
    """Of ListQuotasRequest."""

    tenant: str


class SetQuota(Write, total=False):
    """Of SetQuotaRequest: one of `quota` and `clear`."""

    quota: t.Quota
    clear: bool


class Search(Read, Spawned, total=False):
    """Of SearchRequest."""

    scope: t.SearchScope
    mode: t.SearchMode
    limit: int
    page_token: str
    roles: Sequence[t.Role]
    first_sequence: int
    last_sequence: int
    first_message_id: str
    last_message_id: str
    start_time: datetime | Timestamp
    end_time: datetime | Timestamp
    include_retired: bool
    all_sessions: bool
    key_sessions: bool


class Expand(Spawned, total=False):
    """Of ExpandRequest."""

    summary_ids: Sequence[str]
    sequences: Sequence[int]
    message_ids: Sequence[str]
    max_tokens: int
    max_depth: int
    include_messages: bool
    page_token: str


class Project(Read, total=False):
    """Of ProjectRequest: one of `session` and `messages`."""

    session: t.SessionRef
    messages: Sequence[t.Message]
    budget: t.Budget
    prompt: Sequence[t.Part]
    system_prompt_addition: str
    epoch: str


class Lend(TypedDict, total=False):
    """Of AttachRequest.Hello."""

    host_id: str
    agent_id: str
    models: Sequence[str]
    max_concurrent_jobs: int
    max_input_tokens: int
