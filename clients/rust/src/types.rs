//! The messages and enums of the API, made of its protos; their comments are those of the protos.

#![allow(missing_docs, clippy::doc_lazy_continuation, clippy::large_enum_variant, rustdoc::all)]

include!(concat!(env!("OUT_DIR"), "/contextengine.v1.rs"));
