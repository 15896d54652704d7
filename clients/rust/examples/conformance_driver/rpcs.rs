//! Unary rpcs by their names.

use contextengine::types::*;
use contextengine::{Client, Rpc};
use serde_json::Value;

use crate::protocol::{Failure, responded};

/// Calls the unary rpc of a name with an encoded request.
pub async fn call(client: &Client, name: &str, request: &[u8]) -> Result<Value, Failure> {
    async fn through<R: Rpc>(client: &Client, request: &[u8]) -> Result<Value, Failure> {
        responded(client.call(R::decode(request)?).await)
    }
    macro_rules! called {
        ($($rpc:literal $request:ty,)*) => {
            match name {
                $($rpc => through::<$request>(client, request).await,)*
                _ => Err(format!("unknown rpc {name}").into()),
            }
        };
    }
    called! {
        "ContextEngine.Bootstrap" BootstrapRequest,
        "ContextEngine.Ingest" IngestRequest,
        "ContextEngine.IngestBatch" IngestBatchRequest,
        "ContextEngine.Assemble" AssembleRequest,
        "ContextEngine.Compact" CompactRequest,
        "ContextEngine.CommitCompaction" CommitCompactionRequest,
        "ContextEngine.AfterTurn" AfterTurnRequest,
        "ContextEngine.RecordHostChange" RecordHostChangeRequest,
        "ContextEngine.Maintain" MaintainRequest,
        "ContextEngine.ReportUsage" ReportUsageRequest,
        "ContextEngine.ShouldCompact" ShouldCompactRequest,
        "ContextEngine.UpdateModel" UpdateModelRequest,
        "ContextEngine.GetStatus" GetStatusRequest,
        "ContextEngine.ListTools" ListToolsRequest,
        "ContextEngine.CallTool" CallToolRequest,
        "ContextEngine.PrepareSubagentSpawn" PrepareSubagentSpawnRequest,
        "ContextEngine.RollbackSubagentSpawn" RollbackSubagentSpawnRequest,
        "ContextEngine.EndSubagent" EndSubagentRequest,
        "ContextEngine.ResetSession" ResetSessionRequest,
        "ContextEngine.EndSession" EndSessionRequest,
        "ContextEngine.DisposeSession" DisposeSessionRequest,
        "Sessions.List" SessionsListRequest,
        "Sessions.Get" SessionsGetRequest,
        "Sessions.Delete" DeleteRequest,
        "Engines.List" EnginesListRequest,
        "Engines.Get" EnginesGetRequest,
        "Engines.Doctor" DoctorRequest,
        "Engines.Assign" AssignRequest,
        "Recall.Search" SearchRequest,
        "Recall.Inspect" InspectRequest,
        "Recall.Expand" ExpandRequest,
        "Projection.Project" ProjectRequest,
    }
}
