/** Every message, enum and schema of the package `contextengine.v1`. The protos document them. */
export * from "./gen/contextengine/v1/assemble_pb.js";
export * from "./gen/contextengine/v1/budget_pb.js";
export * from "./gen/contextengine/v1/compaction_pb.js";
export * from "./gen/contextengine/v1/context_engine_pb.js";
export * from "./gen/contextengine/v1/engine_info_pb.js";
export * from "./gen/contextengine/v1/engines_pb.js";
export * from "./gen/contextengine/v1/errors_pb.js";
export * from "./gen/contextengine/v1/host_pb.js";
export * from "./gen/contextengine/v1/lifecycle_pb.js";
export * from "./gen/contextengine/v1/message_pb.js";
export * from "./gen/contextengine/v1/projection_pb.js";
export * from "./gen/contextengine/v1/quota_pb.js";
export * from "./gen/contextengine/v1/recall_pb.js";
export * from "./gen/contextengine/v1/runtime_pb.js";
export * from "./gen/contextengine/v1/sessions_pb.js";
export * from "./gen/contextengine/v1/subagent_pb.js";
