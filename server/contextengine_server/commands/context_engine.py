"""What service ContextEngine can be asked, a command for each of its calls."""

from __future__ import annotations

import msgspec

from .compaction.commit_compaction import CommitCompaction
from .compaction.compact import Compact
from .compaction.should_compact import ShouldCompact
from .lifecycle.dispose_session import DisposeSession
from .lifecycle.end_session import EndSession
from .lifecycle.get_status import GetStatus
from .lifecycle.maintain import Maintain
from .lifecycle.record_host_change import RecordHostChange
from .lifecycle.reset_session import ResetSession
from .subagents.end_subagent import EndSubagent
from .subagents.prepare_subagent_spawn import PrepareSubagentSpawn
from .subagents.rollback_subagent_spawn import RollbackSubagentSpawn
from .tools.call_tool import CallTool
from .tools.list_tools import ListTools
from .turn.after_turn import AfterTurn
from .turn.assemble import Assemble
from .turn.bootstrap import Bootstrap
from .turn.ingest import Ingest
from .turn.report_usage import ReportUsage
from .turn.update_model import UpdateModel


class ContextEngineCommands(msgspec.Struct, frozen=True):
    """The commands by the names of their calls."""

    bootstrap: Bootstrap
    ingest: Ingest
    assemble: Assemble
    after_turn: AfterTurn
    compact: Compact
    commit_compaction: CommitCompaction
    should_compact: ShouldCompact
    record_host_change: RecordHostChange
    maintain: Maintain
    report_usage: ReportUsage
    update_model: UpdateModel
    get_status: GetStatus
    reset_session: ResetSession
    end_session: EndSession
    dispose_session: DisposeSession
    prepare_subagent_spawn: PrepareSubagentSpawn
    rollback_subagent_spawn: RollbackSubagentSpawn
    end_subagent: EndSubagent
    list_tools: ListTools
    call_tool: CallTool
