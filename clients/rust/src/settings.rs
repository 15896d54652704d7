//! The settings of a client, and what is refused of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use tonic::metadata::{Ascii, MetadataMap, MetadataValue};
#[cfg(feature = "tls")]
use tonic::transport::{Certificate, ClientTlsConfig};
use tonic::transport::{Endpoint, Uri};

use crate::client::Client;
use crate::connection::Connection;
use crate::queue::{self, Queue};
use crate::rpc::METHODS;

/// Where a server listens that was started without settings.
pub const DEFAULT_TARGET: &str = "127.0.0.1:50051";
/// The server's default limit of a request or reply.
pub const DEFAULT_MAX_MESSAGE_BYTES: usize = 64 << 20;
/// Longer than the five minutes within which a gRPC server without settings takes one ping.
pub const DEFAULT_KEEPALIVE: Duration = Duration::from_secs(310);
/// After it an attempt to connect is given up, and the next begins.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than a rolling restart takes.
pub const DEFAULT_RETRY_FOR: Duration = Duration::from_secs(10);

/// A function that answers metadata for an rpc.
pub(crate) type Metadata = Arc<dyn Fn() -> MetadataMap + Send + Sync>;

/// The settings of a [`Client`] that is to be: see [`Client::builder`].
#[must_use]
pub struct Builder {
    target: String,
    token: Option<String>,
    insecure: bool,
    #[cfg(feature = "tls")]
    tls: Option<ClientTlsConfig>,
    timeouts: HashMap<String, Option<Duration>>,
    metadata: Option<Metadata>,
    max_message_bytes: usize,
    keepalive: Duration,
    retry_for: Duration,
    fallback: bool,
    breaker: bool,
    max_queued_messages: usize,
    max_queued_bytes: usize,
    spill_file: Option<PathBuf>,
}

impl Builder {
    pub(crate) fn new(target: String) -> Self {
        Self {
            target,
            token: None,
            insecure: false,
            #[cfg(feature = "tls")]
            tls: None,
            timeouts: HashMap::new(),
            metadata: None,
            max_message_bytes: DEFAULT_MAX_MESSAGE_BYTES,
            keepalive: DEFAULT_KEEPALIVE,
            retry_for: DEFAULT_RETRY_FOR,
            fallback: true,
            breaker: false,
            max_queued_messages: queue::MAX_MESSAGES,
            max_queued_bytes: queue::MAX_BYTES,
            spill_file: None,
        }
    }

    /// Sends a bearer token. It goes unencrypted only to this machine, unless [`insecure`](Self::insecure) is set.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Lets the token travel unencrypted to another machine.
    pub fn insecure(mut self) -> Self {
        self.insecure = true;
        self
    }

    /// Encrypts, and trusts the system's root certificates.
    #[cfg(feature = "tls")]
    pub fn tls(self) -> Self {
        self.tls_config(ClientTlsConfig::new().with_native_roots())
    }

    /// Encrypts, and trusts these root certificates in PEM.
    #[cfg(feature = "tls")]
    pub fn root_certificates(self, pem: impl AsRef<[u8]>) -> Self {
        self.tls_config(ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)))
    }

    /// Encrypts as tonic is told to: for mTLS, or another server name.
    #[cfg(feature = "tls")]
    pub fn tls_config(mut self, config: ClientTlsConfig) -> Self {
        self.tls = Some(config);
        self
    }

    /// Sets the deadline of an rpc by `Service.Rpc`, `ContextEngine.Assemble` say. None: there is none.
    pub fn timeout(mut self, rpc: impl Into<String>, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeouts.insert(rpc.into(), timeout.into());
        self
    }

    /// Sets a function that is called before every rpc, and whose metadata is sent along.
    pub fn metadata(mut self, metadata: impl Fn() -> MetadataMap + Send + Sync + 'static) -> Self {
        self.metadata = Some(Arc::new(metadata));
        self
    }

    /// Sets the largest request and reply.
    pub fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.max_message_bytes = bytes;
        self
    }

    /// Sets the time between pings on an idle connection.
    pub fn keepalive(mut self, every: Duration) -> Self {
        self.keepalive = every;
        self
    }

    /// Sets how long unary calls are sent again while the service is away (`Unavailable`), counted for all of them from when it
    /// went, never beyond a deadline. 10 seconds where it is not set; zero: they are not.
    pub fn retry_for(mut self, patience: Duration) -> Self {
        self.retry_for = patience;
        self
    }

    /// Whether session handles go on by themselves while the service is away. Off: their calls fail like every other.
    pub fn fallback(mut self, fallback: bool) -> Self {
        self.fallback = fallback;
        self
    }

    /// Whether a service that is dead or hung is waited for once: each further call waits 50 ms at most for it and fails as that
    /// one did, until the service answers a question that goes on beside them (grpc.health.v1). Where calls hang all the same, it
    /// is asked the later each time, after a minute at most. Off where it is not set.
    pub fn breaker(mut self, breaker: bool) -> Self {
        self.breaker = breaker;
        self
    }

    /// Sets how many messages may wait for the service to come back.
    pub fn max_queued_messages(mut self, messages: usize) -> Self {
        self.max_queued_messages = messages;
        self
    }

    /// Sets how many bytes may wait for the service to come back.
    pub fn max_queued_bytes(mut self, bytes: usize) -> Self {
        self.max_queued_bytes = bytes;
        self
    }

    /// Names a file that outlives this process with what waits. One client at a time.
    pub fn spill_file(mut self, path: impl AsRef<Path>) -> Self {
        self.spill_file = Some(path.as_ref().to_owned());
        self
    }

    /// Makes the client. It connects at the first call.
    pub fn build(self) -> Result<Client, BuildError> {
        if let Some(name) = self.timeouts.keys().find(|name| !METHODS.iter().any(|method| method.name == **name)) {
            return Err(BuildError::UnknownRpc(name.clone()));
        }
        let is_encrypted = self.is_encrypted();
        if is_encrypted && !cfg!(feature = "tls") {
            return Err(BuildError::NoTls { target: self.target });
        }
        let endpoint =
            self.endpoint(is_encrypted).map_err(|source| BuildError::Target { target: self.target.clone(), source })?;
        let authorization = match &self.token {
            None => None,
            Some(_) if !is_encrypted && !self.insecure && !is_loopback(&self.target, endpoint.uri()) => {
                return Err(BuildError::UnencryptedToken { target: self.target });
            }
            Some(token) => Some(bearer(token)?),
        };
        let queue = if self.fallback {
            let (messages, bytes) = (self.max_queued_messages, self.max_queued_bytes);
            Some(Queue::new(messages, bytes, self.spill_file.as_deref()).map_err(BuildError::SpillFile)?)
        } else {
            None
        };
        let connection = Connection::new(
            endpoint,
            authorization,
            self.metadata,
            self.timeouts,
            self.max_message_bytes,
            self.retry_for,
            self.breaker,
        );
        Ok(Client::from_parts(connection, queue))
    }

    fn is_encrypted(&self) -> bool {
        #[cfg(feature = "tls")]
        if self.tls.is_some() {
            return true;
        }
        self.target.starts_with("https://")
    }

    fn endpoint(&self, is_encrypted: bool) -> Result<Endpoint, tonic::transport::Error> {
        let target = &self.target;
        let address = if target.starts_with("unix:") || target.contains("://") && !target.starts_with("dns:") {
            target.clone()
        } else {
            // As gRPC names targets: an address, or `dns:` and an authority that may be empty before it.
            let address = target.strip_prefix("dns:").unwrap_or(target);
            let address = address.rsplit('/').next().unwrap_or(address);
            format!("{}://{address}", if is_encrypted { "https" } else { "http" })
        };
        let endpoint = Endpoint::new(address)?
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(self.keepalive)
            .user_agent(concat!("contextengine-rust/", env!("CARGO_PKG_VERSION")))?;
        #[cfg(feature = "tls")]
        if let Some(config) = &self.tls {
            return endpoint.tls_config(config.clone());
        }
        Ok(endpoint)
    }
}

fn bearer(token: &str) -> Result<MetadataValue<Ascii>, BuildError> {
    let mut value: MetadataValue<Ascii> = format!("Bearer {token}").parse().map_err(|_| BuildError::Token)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Whether a target can only be this machine.
fn is_loopback(target: &str, uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    target.starts_with("unix:") || host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Settings that no client can be made of.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// A deadline is set for an rpc that does not exist.
    UnknownRpc(String),
    /// The token would travel unencrypted to another machine.
    UnencryptedToken {
        /// Where it would go.
        target: String,
    },
    /// The target asks for TLS, which this build lacks.
    NoTls {
        /// The target as it was given.
        target: String,
    },
    /// The token has characters that metadata cannot carry.
    Token,
    /// The target is no address, or TLS cannot be set up.
    Target {
        /// The target as it was given.
        target: String,
        /// What is wrong with it.
        source: tonic::transport::Error,
    },
    /// The spill file cannot be read, or is damaged.
    SpillFile(io::Error),
}

impl fmt::Display for BuildError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownRpc(name) => write!(out, "timeout: unknown rpc {name}"),
            Self::UnencryptedToken { target } => write!(
                out,
                "the token would travel unencrypted to {target}: set tls or root_certificates, or insecure where the network is \
                 trusted"
            ),
            Self::NoTls { target } => write!(out, "target {target}: TLS needs the feature tls of contextengine"),
            Self::Token => write!(out, "token: only visible ASCII characters are possible"),
            Self::Target { target, source } => write!(out, "target {target}: {source}"),
            Self::SpillFile(problem) => write!(out, "spill file: {problem}"),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Target { source, .. } => Some(source),
            Self::SpillFile(source) => Some(source),
            _ => None,
        }
    }
}
