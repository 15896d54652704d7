//! Listens, speaks TLS, and hands each request to a call of its own.

use std::cell::Cell;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;

use crate::call::{answer, Connection};
use crate::events::{Event, Events};

const BACKLOG: i32 = 1024;
/// How long after an accept that failed, for want of descriptors say, the next is tried.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a client may take to shake hands.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// What a client may send of each call before it is read, as HTTP/2 begins with.
const STREAM_WINDOW: u32 = 65_535;
/// Calls hold each other up by nothing but their own windows.
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;
/// Calls that a client may cancel before they are looked at.
const PENDING_RESETS: usize = 10_000;

#[derive(Clone)]
pub struct Limits {
    pub largest: usize,
    pub streams: u32,
    pub header_bytes: u32,
    pub keepalive: Duration,
    pub keepalive_timeout: Duration,
}

/// The configuration of TLS that the next connection is shown; None: no TLS.
pub type Tls = Arc<Mutex<Option<Arc<ServerConfig>>>>;

/// Listens on `host:port`, wherever the name leads. Answers the port.
pub fn listen(address: &str) -> io::Result<(Vec<TcpListener>, u16)> {
    let mut listeners = Vec::new();
    let mut port = 0;
    for mut address in address.to_socket_addrs()? {
        if port != 0 {
            address.set_port(port);
        }
        let listener = bound(address)?;
        port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok((listeners, port))
}

fn bound(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if address.ip().is_unspecified() && address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

struct Front {
    events: Arc<Events>,
    limits: Limits,
    tls: Tls,
    keys: Rc<Cell<u64>>,
    stopping: watch::Receiver<bool>,
    /// Dropped with each connection: who has the other end sees when none is left.
    alive: mpsc::Sender<()>,
}

/// Serves until `stopping` says so and every connection has ended, or `closing` is dropped.
pub async fn serve(
    listeners: Vec<TcpListener>,
    events: Arc<Events>,
    limits: Limits,
    tls: Tls,
    mut stopping: watch::Receiver<bool>,
    mut closing: watch::Receiver<bool>,
) {
    let (alive, mut ended) = mpsc::channel(1);
    let front = Rc::new(Front {
        events: events.clone(),
        limits,
        tls,
        keys: Rc::new(Cell::new(0)),
        stopping: stopping.clone(),
        alive,
    });
    let accepting: Vec<_> = listeners
        .into_iter()
        .map(|listener| tokio::task::spawn_local(accept(listener, front.clone())))
        .collect();
    drop(front);
    let _ = stopping.wait_for(|stop| *stop).await;
    for task in accepting {
        task.abort();
        let _ = task.await;
    }
    tokio::select! {
        _ = ended.recv() => {}
        _ = closing.wait_for(|close| *close) => {}
    }
    events.push(Event::Stopped);
}

async fn accept(listener: TcpListener, front: Rc<Front>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let _ = stream.set_nodelay(true);
                let family = if peer.is_ipv4() { "ipv4" } else { "ipv6" };
                let peer = format!("{family}:{peer}").into();
                tokio::task::spawn_local(secured(stream, peer, front.clone()));
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn secured(stream: TcpStream, peer: Arc<str>, front: Rc<Front>) {
    let configuration = front.tls.lock().unwrap().clone();
    let Some(configuration) = configuration else {
        return spoken(stream, peer, None, front).await;
    };
    let shaken = TlsAcceptor::from(configuration).accept(stream);
    if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, shaken).await {
        let certificate = (stream.get_ref().1.peer_certificates())
            .and_then(<[CertificateDer]>::first)
            .map(|certificate| Arc::from(certificate.as_ref()));
        spoken(stream, peer, certificate, front).await;
    }
}

async fn spoken<S>(stream: S, peer: Arc<str>, certificate: Option<Arc<[u8]>>, front: Rc<Front>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = &front.limits;
    let connection = Arc::new(Connection {
        events: front.events.clone(),
        peer,
        certificate,
        largest: limits.largest,
    });
    let _alive = front.alive.clone();
    let mut stopping = front.stopping.clone();
    let keys = front.keys.clone();
    let service = service_fn(move |request| {
        keys.set(keys.get() + 1);
        answer(request, connection.clone(), keys.get())
    });
    let served = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(limits.header_bytes)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .keep_alive_interval(limits.keepalive)
        .keep_alive_timeout(limits.keepalive_timeout)
        .serve_connection(TokioIo::new(stream), service);
    let mut served = std::pin::pin!(served);
    tokio::select! {
        _ = served.as_mut() => return,
        _ = stopping.wait_for(|stop| *stop) => served.as_mut().graceful_shutdown(),
    }
    let _ = served.await;
}
