//! From connections to requests: accepts, bounds, drains.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;

use crate::config::seconds;
use crate::error::ServeError;
use crate::log::Level;
use crate::state::{Reload, State};

/// Bytes of a request's head: its first line and its headers.
const HEAD_BYTES: usize = 32 << 10;
/// Headers of a request.
const MOST_HEADERS: usize = 64;

/// Connections that may wait to be accepted: a shop that starts opens hundreds at once.
const BACKLOG: u32 = 4_096;

/// A server that listens and does not answer yet.
pub struct Server {
    state: Arc<State>,
    runtime: tokio::runtime::Runtime,
    listener: TcpListener,
}

/// Listens where the configuration says and answers until the process is asked to stop (SIGTERM, Ctrl-C). Then requests under way are
/// finished. `ready` is told the address first.
pub fn serve(state: Arc<State>, ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    let server = Server::bind(state)?;
    server.state.warn();
    ready(server.address());
    server.run(stop_requested())
}

impl Server {
    /// Listens. Whoever connects waits until [`Server::run`] answers.
    pub fn bind(state: Arc<State>) -> Result<Self, ServeError> {
        let io = |what: String| move |source| ServeError::Io { what, source };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(state.config.num_threads())
            .thread_name("satf-serve")
            // When many requests come at once, most of them are in the queue that all threads share: it gets its turn often.
            .global_queue_interval(5)
            .enable_all()
            .build()
            .map_err(io("cannot start the threads that answer".to_owned()))?;
        let address = state.config.listen;
        let listener =
            runtime.block_on(async { listen(address) }).map_err(io(format!("cannot listen on {address}")))?;
        Ok(Server { state, runtime, listener })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap_or(self.state.config.listen)
    }

    /// Answers until `stop` is done, then finishes what is under way.
    pub fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), ServeError> {
        let Server { state, runtime, listener } = self;
        runtime.block_on(async move {
            let app = crate::app(Arc::clone(&state));
            let chores = chores(&state);
            let (drain, draining) = watch::channel(false);
            tokio::select! {
                () = accept(&state, &listener, &app, &draining) => {}
                () = stop => {}
            }
            drop(listener);
            finish(&state, &drain).await;
            for chore in chores {
                chore.abort();
            }
            state.log.flush();
        });
        // Threads that read files need not be waited for.
        runtime.shutdown_timeout(Duration::from_secs(1));
        Ok(())
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // As the standard library does it: a server that starts again need not wait for its old connections.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// What goes on beside the answers.
fn chores(state: &Arc<State>) -> Vec<tokio::task::JoinHandle<()>> {
    let ticking = Arc::clone(state);
    let seconds_pass = tokio::spawn(async move {
        let mut interval = tokio::time::interval(Duration::from_secs(1));
        interval.tick().await;
        loop {
            interval.tick().await;
            ticking.seconds.tick(&ticking.metrics);
            ticking.sessions.sweep(Instant::now());
        }
    });
    let logging = Arc::clone(state);
    let log = tokio::task::spawn_blocking(move || {
        while !logging.is_stopped.load(Ordering::Relaxed) {
            logging.log.flush();
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let beating = Arc::clone(state);
    let pulse = tokio::spawn(async move {
        let _ = beating.pulse.run().await;
    });
    let mut chores = vec![seconds_pass, log, pulse];
    if state.config.watch_seconds > 0.0 {
        chores.push(tokio::spawn(watch_files(Arc::clone(state))));
    }
    #[cfg(unix)]
    chores.push(tokio::spawn(hang_ups(Arc::clone(state))));
    chores
}

async fn watch_files(state: Arc<State>) {
    let mut interval = tokio::time::interval(seconds(state.config.watch_seconds));
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let state = Arc::clone(&state);
        let _ = tokio::task::spawn_blocking(move || state.reload(Reload::Watched)).await;
    }
}

/// SIGHUP reads the files again.
#[cfg(unix)]
async fn hang_ups(state: Arc<State>) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut signals) = signal(SignalKind::hangup()) else { return };
    while signals.recv().await.is_some() {
        let state = Arc::clone(&state);
        let _ = tokio::task::spawn_blocking(move || state.reload(Reload::Asked)).await;
    }
}

/// Done when the process is asked to stop.
pub(crate) async fn stop_requested() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (terminate, interrupt) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
        if let (Ok(mut terminate), Ok(mut interrupt)) = (terminate, interrupt) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

async fn accept(state: &Arc<State>, listener: &TcpListener, app: &Router, draining: &watch::Receiver<bool>) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // No more files, say: others may close some.
                if !is_of_connection(&error) {
                    let fields = json!({"reason": error.to_string()});
                    state.log.event(Level::Error, "connections cannot be accepted", &fields);
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                continue;
            }
        };
        let open = state.metrics.connections.fetch_add(1, Ordering::Relaxed);
        let guard = Connection(Arc::clone(state));
        if open >= state.config.limits.connections as i64 {
            state.metrics.connections_refused.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(refuse(stream, guard));
            continue;
        }
        let _ = stream.set_nodelay(true);
        tokio::spawn(converse(stream, app.clone(), draining.clone(), guard));
    }
}

/// An open connection, counted for as long as it lives.
struct Connection(Arc<State>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Says that there are too many, without reading anything.
async fn refuse(mut stream: TcpStream, guard: Connection) {
    const ANSWER: &[u8] =
        b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
        connection: close\r\ncontent-length: 87\r\n\r\n\
        {\"error\":{\"code\":\"overloaded\",\"message\":\"too many connections; try again in a second\"}}";
    if guard.0.tls.is_none() {
        let _ = tokio::time::timeout(Duration::from_millis(100), stream.write_all(ANSWER)).await;
        let _ = stream.shutdown().await;
    }
}

/// Answers the requests of a connection, one after the other.
async fn converse(stream: TcpStream, app: Router, draining: watch::Receiver<bool>, guard: Connection) {
    let state = &guard.0;
    let (limits, patience) = (&state.config.limits, seconds(state.config.limits.write_seconds));
    match &state.tls {
        None => answer(Patient::new(stream, patience), app, draining, state).await,
        Some(tls) => {
            let acceptor = TlsAcceptor::from(tls.load_full());
            let handshake = tokio::time::timeout(seconds(limits.header_seconds), acceptor.accept(stream));
            if let Ok(Ok(stream)) = handshake.await {
                answer(Patient::new(stream, patience), app, draining, state).await;
            }
        }
    }
}

async fn answer<S>(stream: S, app: Router, mut draining: watch::Receiver<bool>, state: &State)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(seconds(state.config.limits.header_seconds))
        .max_headers(MOST_HEADERS)
        .max_buf_size(HEAD_BYTES)
        .half_close(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = draining.wait_for(|is_draining| *is_draining) => {}
    }
    // The request under way is answered, and no other one begun.
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// Lets requests under way end.
async fn finish(state: &State, drain: &watch::Sender<bool>) {
    state.is_draining.store(true, Ordering::Relaxed);
    let open = || state.metrics.connections.load(Ordering::Relaxed);
    state.log.event(
        Level::Info,
        "stopping: requests under way are finished",
        &json!({"connections": open()}),
    );
    let _ = drain.send(true);
    let end = Instant::now() + seconds(state.config.limits.drain_seconds);
    while open() > 0 && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let fields = json!({"connections_cut": open()});
    state.log.event(Level::Info, "stopped", &fields);
    state.is_stopped.store(true, Ordering::Relaxed);
}

/// A stream whose other end must take what is written within some time.
struct Patient<S> {
    stream: S,
    patience: Duration,
    /// Runs from when a write had to wait.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    fn new(stream: S, patience: Duration) -> Self {
        Patient { stream, patience, waiting: None }
    }

    fn watched<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.waiting = None;
            return outcome;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watched(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.watched(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watched(context, outcome)
    }
}
