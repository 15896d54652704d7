//! Typed errors: a kind for each reason that contextengine names, made of google.rpc.Status.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::StatusExt;

const DOMAIN: &str = "contextengine";

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $reason:literal,)*) => {
        /// What kind of error a call ended with; the names are the same in every language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            /// None of the others: a reason that this version does not know, or none at all.
            ContextEngineError,
            /// The service cannot be reached, or is not ready. See [`Error::is_unavailable`].
            Unavailable,
            $($(#[$doc])* $kind,)*
        }

        impl ErrorKind {
            fn of_reason(reason: &str) -> Option<Self> {
                match reason {
                    $($reason => Some(Self::$kind),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// A field is missing, malformed or out of its range; [`Error::violations`] names it.
    InvalidField = "INVALID_FIELD",
    /// Fields that exclude each other are set.
    ContradictoryFields = "CONTRADICTORY_FIELDS",
    /// The request could not be read.
    MalformedRequest = "MALFORMED_REQUEST",
    /// The parts of a budget leave nothing for messages.
    BudgetImpossible = "BUDGET_IMPOSSIBLE",
    /// There is no such session.
    SessionNotFound = "SESSION_NOT_FOUND",
    /// There is no such message, summary or other row.
    RowNotFound = "ROW_NOT_FOUND",
    /// A message of this id is stored with other content.
    MessageConflict = "MESSAGE_CONFLICT",
    /// The request id was used for another request.
    RequestIdReused = "REQUEST_ID_REUSED",
    /// An import found the session there already.
    SessionExists = "SESSION_EXISTS",
    /// No engine has this id; the metadata lists those that exist.
    UnknownEngine = "UNKNOWN_ENGINE",
    /// The session is not at the expected revision.
    RevisionMismatch = "REVISION_MISMATCH",
    /// Other sessions depend on this one.
    HasDependents = "HAS_DEPENDENTS",
    /// Other calls changed the session first, again and again.
    LostRace = "LOST_RACE",
    /// Something exceeds a limit of size.
    TooLarge = "TOO_LARGE",
    /// The service has more to do than it takes on; [`Error::retry_after`] says when to try again.
    Overloaded = "OVERLOADED",
    /// The budget for summaries is spent.
    BudgetSpent = "BUDGET_SPENT",
    /// The server is about to stop. [`Error::is_unavailable`] as well.
    Draining = "DRAINING",
    /// The store cannot be reached. [`Error::is_unavailable`] as well.
    StoreUnavailable = "STORE_UNAVAILABLE",
    /// The token is missing or wrong.
    Unauthenticated = "UNAUTHENTICATED",
    /// The caller may not do this.
    PermissionDenied = "PERMISSION_DENIED",
    /// The engine failed, and the configuration allows no other to answer.
    EngineFailed = "ENGINE_FAILED",
    /// This version of the server does not serve the rpc.
    NotYetServed = "NOT_YET_SERVED",
    /// A defect of the service.
    Defect = "DEFECT",
    /// The deadline passed.
    DeadlinePassed = "DEADLINE",
    /// The session was deleted and made again meanwhile.
    SessionReplaced = "SESSION_REPLACED",
    /// A stored row cannot be read.
    CorruptRow = "CORRUPT_ROW",
    /// The resume position is older than what the server still has.
    PositionLost = "POSITION_LOST",
    /// What a projection may not cut exceeds the target's limit.
    ProjectionImpossible = "PROJECTION_IMPOSSIBLE",
    /// The spawn that a token names is over.
    SpawnEnded = "SPAWN_ENDED",
    /// A child would be too deep, or its parent has too many.
    SpawnLimit = "SPAWN_LIMIT",
    /// The host cannot do what the chosen engine needs.
    HostCapabilityMissing = "HOST_CAPABILITY_MISSING",
    /// The service is away and the queue holds all that it may. Raised by the client itself.
    QueueFull = "QUEUE_FULL",
    /// A delta does not fit the list that is held; the next call gets the whole list. Raised by the client itself.
    DeltaMismatch = "DELTA_MISMATCH",
}

/// A field of the request that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The path of the field.
    pub field: String,
    /// What would be right.
    pub description: String,
}

/// A call that failed.
#[derive(Clone)]
pub struct Error(Arc<Details>);

#[derive(Clone)]
struct Details {
    code: Code,
    reason: String,
    message: String,
    violations: Vec<Violation>,
    metadata: BTreeMap<String, String>,
    retry_after: Option<Duration>,
}

impl Error {
    pub(crate) fn new(code: Code, reason: &str, message: impl Into<String>) -> Self {
        Self(Arc::new(Details {
            code,
            reason: reason.into(),
            message: message.into(),
            violations: Vec::new(),
            metadata: BTreeMap::new(),
            retry_after: None,
        }))
    }

    pub(crate) fn invalid(field: &str, description: &str) -> Self {
        let mut error = Self::new(Code::InvalidArgument, "INVALID_FIELD", format!("{field}: {description}"));
        let violation = Violation { field: field.into(), description: description.into() };
        Arc::make_mut(&mut error.0).violations.push(violation);
        error
    }

    pub(crate) fn deadline() -> Self {
        Self::new(Code::DeadlineExceeded, "", "no answer within the deadline")
    }

    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        if !self.0.reason.is_empty() {
            return ErrorKind::of_reason(&self.0.reason).unwrap_or(ErrorKind::ContextEngineError);
        }
        match self.0.code {
            Code::Unavailable => ErrorKind::Unavailable,
            Code::DeadlineExceeded => ErrorKind::DeadlinePassed,
            Code::Unauthenticated => ErrorKind::Unauthenticated,
            Code::PermissionDenied => ErrorKind::PermissionDenied,
            _ => ErrorKind::ContextEngineError,
        }
    }

    /// Whether it is [`ErrorKind::Unavailable`], [`ErrorKind::Draining`] or [`ErrorKind::StoreUnavailable`].
    pub fn is_unavailable(&self) -> bool {
        matches!(self.kind(), ErrorKind::Unavailable | ErrorKind::Draining | ErrorKind::StoreUnavailable)
    }

    /// The gRPC status.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// A value of `contextengine.v1.ErrorReason` without its prefix. Empty: the transport failed, and not the service.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// What went wrong, for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The fields that are wrong.
    pub fn violations(&self) -> &[Violation] {
        &self.0.violations
    }

    /// Facts of the failure by name, as `ErrorReason` documents them.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.0.metadata
    }

    /// When to try again. None: the server did not say.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The reason, or the name of the gRPC code where there is none.
    pub(crate) fn reason_or_code(&self) -> &str {
        if self.0.reason.is_empty() { code_name(self.0.code) } else { &self.0.reason }
    }

    /// Whether it says that the service is away, rather than that something must be mended.
    pub(crate) fn is_borne(&self) -> bool {
        match self.0.code {
            Code::Unavailable | Code::DeadlineExceeded => true,
            Code::Unknown | Code::Internal if self.0.reason.is_empty() => true,
            _ => self.may_be_sent_again(),
        }
    }

    /// Whether the service refused without doing anything, and may do it in a moment.
    pub(crate) fn may_be_sent_again(&self) -> bool {
        matches!(self.kind(), ErrorKind::Overloaded | ErrorKind::LostRace)
    }

    /// Whether the service will never take what it refused with this error.
    pub(crate) fn is_for_good(&self) -> bool {
        matches!(self.0.code, Code::InvalidArgument | Code::AlreadyExists | Code::OutOfRange)
            || self.kind() == ErrorKind::TooLarge
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        if status.source().is_some() {
            // Made by the transport and not by a server. tonic gives broken connections several codes, gRPC one.
            return Self::new(Code::Unavailable, "", chain(&status));
        }
        if status.code() == Code::OutOfRange && status.message().contains("decoded message length too large") {
            return Self::new(Code::ResourceExhausted, "", status.message());
        }
        let given = status.get_error_details();
        let mut details = Details {
            code: status.code(),
            reason: String::new(),
            message: status.message().into(),
            violations: Vec::new(),
            metadata: BTreeMap::new(),
            retry_after: given.retry_info().and_then(|info| info.retry_delay),
        };
        if let Some(info) = given.error_info().filter(|info| info.domain == DOMAIN) {
            details.reason = info.reason.strip_prefix("ERROR_REASON_").unwrap_or(&info.reason).into();
            details.metadata = info.metadata.clone().into_iter().collect();
        }
        for violation in given.bad_request().into_iter().flat_map(|bad| &bad.field_violations) {
            let (field, description) = (violation.field.clone(), violation.description.clone());
            details.violations.push(Violation { field, description });
        }
        Self(Arc::new(details))
    }
}

/// What an error says, and what its causes say besides.
fn chain(status: &Status) -> String {
    let mut said = status.message().to_owned();
    let mut cause = status.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !said.contains(&more) {
            said = format!("{said}: {more}");
        }
        cause = error.source();
    }
    said
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.reason_or_code(), self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Error")
            .field("kind", &self.kind())
            .field("code", &self.0.code)
            .field("reason", &self.0.reason)
            .field("message", &self.0.message)
            .field("violations", &self.0.violations)
            .field("metadata", &self.0.metadata)
            .field("retry_after", &self.0.retry_after)
            .finish()
    }
}

impl StdError for Error {}

/// The name of a gRPC code as the specification writes it: `DEADLINE_EXCEEDED`.
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
