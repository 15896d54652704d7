//! Session affinity: what lets a proxy keep a session at one of several servers.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::types::{SessionRef, WatchRequest};

/// The metadata that names a call's session. Servers do not read it: any server serves any call.
pub const SESSION_HEADER: &str = "contextengine-session";

/// What is watched, where that is one session.
pub(crate) fn watched(request: &WatchRequest) -> Option<SessionRef> {
    let (agent_id, session_id) = (request.agent_id.clone(), request.session_id.clone());
    (!agent_id.is_empty() && !session_id.is_empty()).then(|| SessionRef { agent_id, session_id, ..Default::default() })
}

/// A session's name for who is between: a hash, since ids may be anything and are nobody else's business. 32 hexadecimal
/// digits. None: the reference names no session.
pub(crate) fn affinity(session: &SessionRef) -> Option<String> {
    let named = if session.session_id.is_empty() { &session.session_key } else { &session.session_id };
    if named.is_empty() {
        return None;
    }
    let digest = Sha256::new().chain_update(&session.agent_id).chain_update([0]).chain_update(named).finalize();
    let mut name = String::with_capacity(32);
    for byte in &digest[..16] {
        write!(name, "{byte:02x}").expect("a String takes everything");
    }
    Some(name)
}
