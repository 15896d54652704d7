#![doc = include_str!("../README.md")]

mod affinity;
mod assembly;
mod atoms;
mod attempts;
mod breaker;
mod client;
mod connection;
mod costs;
mod error;
pub mod fallback;
pub mod formats;
mod ids;
mod import;
mod lending;
mod messages;
mod queue;
mod rpc;
mod session;
mod settings;
mod spill;
mod streams;
mod trace;
pub mod types;

pub use affinity::SESSION_HEADER;
pub use assembly::{Assembly, Degraded};
pub use client::Client;
pub use error::{Error, ErrorKind, Violation, code_name};
pub use ids::{fill_messages, new_id};
pub use messages::{assistant, system, text, text_of, text_of_bytes, tool_call, tool_result, user};
pub use queue::Rejected;
pub use rpc::{OfSession, Rpc};
pub use session::Session;
pub use settings::{
    BuildError, Builder, DEFAULT_KEEPALIVE, DEFAULT_MAX_MESSAGE_BYTES, DEFAULT_RETRY_FOR, DEFAULT_TARGET,
};
pub use streams::Replies;
pub use tonic::Code;
pub use tonic::metadata;
