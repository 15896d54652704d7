//! HTTP/2 and gRPC's framing on a thread of its own. Python sees calls and messages, and is asked
//! for nothing while it works: what happens waits in a queue that rings once.

mod call;
mod events;
mod messages;
mod reply;
mod server;
mod status;
mod tls;

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use http::HeaderMap;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use tokio::sync::watch;

use call::{Call, Command};
use events::{Event, Events};
use server::{Limits, Tls};

/// The kinds of events, as `take` names them.
const BEGUN: u8 = 0;
const MESSAGE: u8 = 1;
const ENDED: u8 = 2;
const WRITTEN: u8 = 3;
const GONE: u8 = 4;
const EXPIRED: u8 = 5;
const REFUSED: u8 = 6;
const STOPPED: u8 = 7;

#[pymethods]
impl Call {
    #[getter]
    fn key(&self) -> u64 {
        self.key
    }

    #[getter]
    fn path(&self) -> &str {
        &self.path
    }

    #[getter]
    fn peer(&self) -> &str {
        &self.peer
    }

    /// Seconds that the client waits from now on; None: for good.
    #[getter]
    fn timeout(&self) -> Option<f64> {
        self.timeout.map(|timeout| timeout.as_secs_f64())
    }

    /// The certificate that the client showed, DER.
    #[getter]
    fn certificate<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.certificate.as_ref().map(|der| PyBytes::new(py, der))
    }

    /// What the client sent along: pairs of a key and its text, or bytes where the key ends in
    /// `-bin`.
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut pairs = Vec::with_capacity(self.headers.len());
        for (key, value) in status::metadata(&self.headers) {
            let value = match value {
                status::Value::Text(text) => PyString::new(py, &text).into_any(),
                status::Value::Binary(bytes) => PyBytes::new(py, &bytes).into_any(),
            };
            pairs.push(PyTuple::new(
                py,
                [PyString::new(py, key).into_any(), value],
            )?);
        }
        PyTuple::new(py, pairs)
    }

    /// Asks for the next message.
    fn read(&self) {
        let _ = self.reads.send(());
    }

    fn send_headers(&self, metadata: Vec<(String, Vec<u8>)>) -> PyResult<()> {
        let mut headers = HeaderMap::new();
        status::add(&mut headers, metadata).map_err(|key| unfit(&key))?;
        let _ = self.commands.send(Command::Headers(headers));
        Ok(())
    }

    fn write(&self, message: &[u8]) {
        let _ = self
            .commands
            .send(Command::Write(messages::framed(message)));
    }

    /// The one message of a call, and its end.
    fn reply(&self, message: &[u8]) {
        let _ = self
            .commands
            .send(Command::Reply(messages::framed(message)));
    }

    fn finish(&self, code: i32, text: &str, metadata: Vec<(String, Vec<u8>)>) -> PyResult<()> {
        let mut trailers = status::trailers(code, text);
        status::add(&mut trailers, metadata).map_err(|key| unfit(&key))?;
        let _ = self.commands.send(Command::Finish(trailers));
        Ok(())
    }
}

fn unfit(key: &str) -> PyErr {
    PyValueError::new_err(format!("metadata {key:?}: no header can say this"))
}

/// A front on one address. Not thread-safe but for what it does inside: it belongs to the thread
/// that made it.
#[pyclass]
struct Front {
    events: Arc<Events>,
    limits: Limits,
    tls: Tls,
    listeners: Mutex<Vec<TcpListener>>,
    stopping: watch::Sender<bool>,
    closing: watch::Sender<bool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[pymethods]
impl Front {
    #[new]
    #[pyo3(signature = (*, largest, streams, header_bytes, keepalive_s, keepalive_timeout_s))]
    fn new(
        largest: usize,
        streams: u32,
        header_bytes: u32,
        keepalive_s: f64,
        keepalive_timeout_s: f64,
    ) -> PyResult<Self> {
        let seconds = |value: f64| {
            Duration::try_from_secs_f64(value)
                .map_err(|error| PyValueError::new_err(error.to_string()))
        };
        Ok(Self {
            events: Arc::new(Events::new()?),
            limits: Limits {
                largest,
                streams,
                header_bytes,
                keepalive: seconds(keepalive_s)?,
                keepalive_timeout: seconds(keepalive_timeout_s)?,
            },
            tls: Tls::default(),
            listeners: Mutex::default(),
            stopping: watch::channel(false).0,
            closing: watch::channel(false).0,
            thread: Mutex::default(),
        })
    }

    /// Listens, and answers the port. Raises OSError.
    fn listen(&self, address: &str) -> PyResult<u16> {
        let (listeners, port) = server::listen(address)?;
        self.listeners.lock().unwrap().extend(listeners);
        Ok(port)
    }

    /// Shows a certificate from the next connection on. Raises ValueError.
    #[pyo3(signature = (chain, key, authorities=None))]
    fn secure(&self, chain: &[u8], key: &[u8], authorities: Option<&[u8]>) -> PyResult<()> {
        let configured = tls::configured(chain, key, authorities).map_err(PyValueError::new_err)?;
        *self.tls.lock().unwrap() = Some(configured);
        Ok(())
    }

    /// Begins to accept.
    fn start(&self) -> PyResult<()> {
        let mut thread = self.thread.lock().unwrap();
        if thread.is_some() {
            return Err(PyRuntimeError::new_err("started already"));
        }
        let listeners = std::mem::take(&mut *self.listeners.lock().unwrap());
        let (events, limits, tls) = (self.events.clone(), self.limits.clone(), self.tls.clone());
        let (stopping, closing) = (self.stopping.subscribe(), self.closing.subscribe());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| PyOSError::new_err(error.to_string()))?;
        let run = move || {
            let local = tokio::task::LocalSet::new();
            local.block_on(
                &runtime,
                server::serve(listeners, events, limits, tls, stopping, closing),
            );
        };
        *thread = Some(
            std::thread::Builder::new()
                .name("contextengine-front".into())
                .spawn(run)?,
        );
        Ok(())
    }

    /// Readable when there are events to take.
    fn fd(&self) -> i32 {
        self.events.fd()
    }

    /// What has happened, in order: (kind, key or call, message).
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let taken = PyList::empty(py);
        for event in self.events.take() {
            let event = match event {
                Event::Begun(call, message) => {
                    let message = message.map(|message| PyBytes::new(py, &message));
                    let call = Bound::new(py, *call)?;
                    (BEGUN, call, message).into_pyobject(py)?
                }
                Event::Message(key, message) => {
                    (MESSAGE, key, PyBytes::new(py, &message)).into_pyobject(py)?
                }
                Event::Ended(key) => (ENDED, key, ()).into_pyobject(py)?,
                Event::Written(key) => (WRITTEN, key, ()).into_pyobject(py)?,
                Event::Gone(key) => (GONE, key, ()).into_pyobject(py)?,
                Event::Expired(key) => (EXPIRED, key, ()).into_pyobject(py)?,
                Event::Refused(key) => (REFUSED, key, ()).into_pyobject(py)?,
                Event::Stopped => (STOPPED, 0, ()).into_pyobject(py)?,
            };
            taken.append(event)?;
        }
        Ok(taken)
    }

    /// Accepts no more; clients are told to go elsewhere. STOPPED follows when the last is gone.
    fn stop(&self) {
        let _ = self.stopping.send_replace(true);
    }

    /// Breaks what is left and waits for the thread.
    fn close(&self, py: Python<'_>) {
        let _ = self.stopping.send_replace(true);
        let _ = self.closing.send_replace(true);
        if let Some(thread) = self.thread.lock().unwrap().take() {
            py.detach(|| {
                let _ = thread.join();
            });
        }
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let _ = self.stopping.send_replace(true);
        let _ = self.closing.send_replace(true);
    }
}

#[pymodule]
mod _front {
    #[pymodule_export]
    use super::{Call, Front};
}
