//! The rpcs: their names, deadlines, and what makes each safe to send twice.

use std::time::Duration;

use crate::ids::{fill, fill_messages};
use crate::types::*;

const QUICK: Option<Duration> = Some(Duration::from_secs(15));
const LONG: Option<Duration> = Some(Duration::from_secs(60));
const SLOW: Option<Duration> = Some(Duration::from_secs(600));
const NONE: Option<Duration> = None;

/// An rpc: how it is named, and how it is sent.
#[derive(Debug)]
#[doc(hidden)]
pub struct Method {
    /// `Service.Rpc`.
    pub(crate) name: &'static str,
    /// As on the wire.
    pub(crate) path: &'static str,
    /// The deadline where the settings name none.
    pub(crate) timeout: Option<Duration>,
    /// Whether the connection may break and the call be sent again.
    pub(crate) is_safe_twice: bool,
    /// One request, one reply.
    pub(crate) is_unary: bool,
}

/// A request of an rpc with one request and one reply; its type names the rpc.
///
/// Every such request of [`types`](crate::types) is one: see [`Client::call`](crate::Client::call).
pub trait Rpc: prost::Message + Default + Send + sealed::Sealed {
    /// What the rpc answers.
    type Reply: prost::Message + Default + Send;
    #[doc(hidden)]
    const METHOD: &'static Method;
    /// Sets the ids that make the request safe to send twice.
    #[doc(hidden)]
    fn set_ids(&mut self) {}
    /// The session that the request is about; where a child is made, its parent.
    #[doc(hidden)]
    fn session(&self) -> Option<&SessionRef> {
        None
    }
}

/// A request about one session, which the handle sets: see [`Session::call`](crate::Session::call).
pub trait OfSession: Rpc {
    #[doc(hidden)]
    fn set_session(&mut self, session: SessionRef);
}

mod sealed {
    pub trait Sealed {}
}

/// A constant for each rpc, and for unary ones the request that stands for it.
macro_rules! rpcs {
    (@method $name:ident $service:literal $rpc:literal $timeout:ident $twice:literal $unary:literal) => {
        pub(crate) const $name: Method = Method {
            name: concat!($service, ".", $rpc),
            path: concat!("/contextengine.v1.", $service, "/", $rpc),
            timeout: $timeout,
            is_safe_twice: $twice,
            is_unary: $unary,
        };
    };
    (
        unary { $($name:ident: $service:literal $rpc:literal $timeout:ident $twice:literal $request:ident $reply:ident $(of $session:ident)? { $($ids:item)? })* }
        streams { $($stream:ident: $of:literal $streaming:literal $within:ident $again:literal)* }
    ) => {
        $(rpcs!(@method $name $service $rpc $timeout $twice true);)*
        $(rpcs!(@method $stream $of $streaming $within $again false);)*

        /// All of them.
        pub(crate) const METHODS: &[Method] = &[$($name,)* $($stream,)*];

        $(
            impl sealed::Sealed for $request {}

            impl Rpc for $request {
                type Reply = $reply;
                const METHOD: &'static Method = &$name;
                $($ids)?
                $(fn session(&self) -> Option<&SessionRef> {
                    self.$session.as_ref()
                })?
            }
        )*
    };
}

rpcs! {
    unary {
    BOOTSTRAP: "ContextEngine" "Bootstrap" LONG true BootstrapRequest BootstrapResponse of session {
        fn set_ids(&mut self) {
            fill(&mut self.request_id);
        }
    }
    INGEST: "ContextEngine" "Ingest" LONG true IngestRequest IngestResponse of session {
        fn set_ids(&mut self) {
            fill_messages(self.message.as_mut_slice());
        }
    }
    INGEST_BATCH: "ContextEngine" "IngestBatch" LONG true IngestBatchRequest IngestBatchResponse of session {
        fn set_ids(&mut self) {
            fill_messages(&mut self.messages);
        }
    }
    ASSEMBLE: "ContextEngine" "Assemble" LONG true AssembleRequest AssembleResponse of session {
        fn set_ids(&mut self) {
            fill_messages(&mut self.ingest);
            if self.live.as_ref().is_some_and(|live| live.store_new) {
                fill(&mut self.request_id);
            }
        }
    }
    COMPACT: "ContextEngine" "Compact" SLOW true CompactRequest CompactResponse of session {
        fn set_ids(&mut self) { fill(&mut self.request_id); }
    }
    COMMIT_COMPACTION: "ContextEngine" "CommitCompaction" QUICK true CommitCompactionRequest CommitCompactionResponse of session {}
    AFTER_TURN: "ContextEngine" "AfterTurn" LONG true AfterTurnRequest AfterTurnResponse of session {
        fn set_ids(&mut self) {
            let old = old_messages(self);
            fill_messages(&mut self.messages[old..]);
            fill(&mut self.request_id);
        }
    }
    RECORD_HOST_CHANGE: "ContextEngine" "RecordHostChange" QUICK true RecordHostChangeRequest RecordHostChangeResponse of session {
        fn set_ids(&mut self) { fill(&mut self.change_id); }
    }
    MAINTAIN: "ContextEngine" "Maintain" QUICK true MaintainRequest MaintainResponse of session {}
    REPORT_USAGE: "ContextEngine" "ReportUsage" QUICK true ReportUsageRequest ReportUsageResponse of session {
        fn set_ids(&mut self) { fill(&mut self.request_id); }
    }
    SHOULD_COMPACT: "ContextEngine" "ShouldCompact" LONG true ShouldCompactRequest ShouldCompactResponse of session {}
    UPDATE_MODEL: "ContextEngine" "UpdateModel" QUICK true UpdateModelRequest UpdateModelResponse of session {
        fn set_ids(&mut self) { fill(&mut self.request_id); }
    }
    GET_STATUS: "ContextEngine" "GetStatus" QUICK true GetStatusRequest GetStatusResponse of session {}
    LIST_TOOLS: "ContextEngine" "ListTools" QUICK true ListToolsRequest ListToolsResponse of session {}
    CALL_TOOL: "ContextEngine" "CallTool" LONG false CallToolRequest CallToolResponse of session {}
    PREPARE_SPAWN: "ContextEngine" "PrepareSubagentSpawn" QUICK true
        PrepareSubagentSpawnRequest PrepareSubagentSpawnResponse of parent {
        fn set_ids(&mut self) { fill(&mut self.request_id); }
    }
    ROLLBACK_SPAWN: "ContextEngine" "RollbackSubagentSpawn" QUICK true
        RollbackSubagentSpawnRequest RollbackSubagentSpawnResponse of parent {}
    END_SUBAGENT: "ContextEngine" "EndSubagent" QUICK true EndSubagentRequest EndSubagentResponse of child {}
    RESET: "ContextEngine" "ResetSession" QUICK true ResetSessionRequest ResetSessionResponse of session {
        fn set_ids(&mut self) { fill(&mut self.request_id); }
    }
    END: "ContextEngine" "EndSession" LONG true EndSessionRequest EndSessionResponse of session {
        fn set_ids(&mut self) { fill(&mut self.request_id); }
    }
    DISPOSE: "ContextEngine" "DisposeSession" QUICK true DisposeSessionRequest DisposeSessionResponse of session {}
    LIST_SESSIONS: "Sessions" "List" QUICK true SessionsListRequest SessionsListResponse {}
    GET_SESSION: "Sessions" "Get" QUICK true SessionsGetRequest SessionsGetResponse of session {}
    DELETE: "Sessions" "Delete" LONG true DeleteRequest DeleteResponse of session {
        fn set_ids(&mut self) { fill(&mut self.request_id); }
    }
    LIST_ENGINES: "Engines" "List" QUICK true EnginesListRequest EnginesListResponse {}
    GET_ENGINE: "Engines" "Get" QUICK true EnginesGetRequest EnginesGetResponse of session {}
    DOCTOR: "Engines" "Doctor" LONG true DoctorRequest DoctorResponse of session {}
    ASSIGN: "Engines" "Assign" QUICK true AssignRequest AssignResponse {
        fn set_ids(&mut self) { fill(&mut self.request_id); }
    }
    LIST_QUOTAS: "Engines" "ListQuotas" QUICK true ListQuotasRequest ListQuotasResponse {}
    SET_QUOTA: "Engines" "SetQuota" QUICK true SetQuotaRequest SetQuotaResponse {
        fn set_ids(&mut self) { fill(&mut self.request_id); }
    }
    SEARCH: "Recall" "Search" LONG true SearchRequest SearchResponse of session {}
    INSPECT: "Recall" "Inspect" QUICK true InspectRequest InspectResponse of session {}
    EXPAND: "Recall" "Expand" LONG true ExpandRequest ExpandResponse of session {}
    PROJECT: "Projection" "Project" LONG true ProjectRequest ProjectResponse of session {}
    }
    streams {
    IMPORT: "Sessions" "Import" SLOW true
    EXPORT: "Sessions" "Export" SLOW true
    WATCH: "Sessions" "Watch" NONE true
    ATTACH: "Runtime" "Attach" NONE false
    }
}

/// The rpcs about one session that the handle has no method of its own for.
macro_rules! of_session {
    ($($request:ident)*) => {
        $(impl OfSession for $request {
            fn set_session(&mut self, session: SessionRef) {
                self.session = Some(session);
            }
        })*
    };
}

of_session! {
    BootstrapRequest CommitCompactionRequest MaintainRequest ShouldCompactRequest UpdateModelRequest GetStatusRequest
    ListToolsRequest CallToolRequest DisposeSessionRequest SessionsGetRequest EnginesGetRequest DoctorRequest
    SearchRequest InspectRequest ExpandRequest ProjectRequest
}

/// How many messages of an AfterTurnRequest were there before the turn.
pub(crate) fn old_messages(request: &AfterTurnRequest) -> usize {
    let old = request.pre_prompt_message_count.unwrap_or(0);
    usize::try_from(old).unwrap_or(0).min(request.messages.len())
}
