//! `--http`: metrics, and whether the process lives and serves, for those who watch it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchyard_console::Console;
use tokio::io::{self, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::timeout;
use tracing::{debug, info};

/// The longest request, in bytes.
const REQUEST_BYTES_MAX: usize = 8_192;
/// How long one may take to come, and its answer to go.
const REQUEST_TIME: Duration = Duration::from_secs(5);
/// How many may be under way at a time.
const REQUESTS_MAX: usize = 256;
/// How long accepting rests when it fails.
const PAUSE: Duration = Duration::from_millis(100);

/// The requests under way, the oldest first.
#[derive(Debug, Default)]
struct UnderWay(Mutex<Requests>);

#[derive(Debug, Default)]
struct Requests {
    next: u64,
    cuts: BTreeMap<u64, Arc<Notify>>,
}

/// One of them: it is over when this is dropped.
#[derive(Debug)]
struct Place {
    under_way: Arc<UnderWay>,
    number: u64,
    cut: Arc<Notify>,
}

impl UnderWay {
    /// Takes a request in. When there are too many, the oldest is ended, as with logins: whoever means it is answered
    /// within moments, and the oldest are those that keep connections half open.
    fn begin(self: &Arc<Self>) -> Place {
        let cut = Arc::new(Notify::new());
        let mut requests = self.locked();
        while requests.cuts.len() >= REQUESTS_MAX
            && let Some((_, oldest)) = requests.cuts.pop_first()
        {
            oldest.notify_one();
        }
        let number = requests.next;
        requests.next = number.saturating_add(1);
        requests.cuts.insert(number, Arc::clone(&cut));
        drop(requests);
        Place { under_way: Arc::clone(self), number, cut }
    }

    fn locked(&self) -> MutexGuard<'_, Requests> {
        // Nothing that can panic runs while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.under_way.locked().cuts.remove(&self.number);
    }
}

/// Answers for ever.
pub(crate) fn serve(listeners: Vec<(SocketAddr, TcpListener)>, console: &Arc<Console>) {
    let under_way = Arc::new(UnderWay::default());
    for (address, listener) in listeners {
        info!(%address, "answering by HTTP");
        let (console, under_way) = (Arc::clone(console), Arc::clone(&under_way));
        tokio::spawn(async move {
            loop {
                let Ok((stream, peer)) = listener.accept().await else {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                };
                let (console, place) = (Arc::clone(&console), under_way.begin());
                tokio::spawn(async move {
                    let answered = tokio::select! {
                        biased;
                        answered = timeout(REQUEST_TIME, answer(stream, &console)) => answered,
                        () = place.cut.notified() => {
                            return debug!(%peer, "a request by HTTP was ended to make room for others");
                        }
                    };
                    match answered {
                        Ok(Ok(())) => {}
                        Ok(Err(error)) => debug!(%peer, %error, "a request by HTTP was not answered"),
                        Err(_) => debug!(%peer, "a request by HTTP took too long"),
                    }
                });
                // Whoever has sent its request is answered before others can push it out.
                tokio::task::yield_now().await;
            }
        });
    }
}

async fn answer(mut stream: TcpStream, console: &Console) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_BYTES_MAX {
        if stream.read_buf(&mut request).await? == 0 {
            break;
        }
    }
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line).into_owned();
    let (status, body) = answered(&line, console);
    let head = line.starts_with("HEAD ");
    let kind = if body.starts_with("# HELP") {
        "text/plain; version=0.0.4; charset=utf-8"
    } else {
        "text/plain; charset=utf-8"
    };
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let length = body.len();
    let mut out = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{allow}Connection: close\r\n\r\n"
    );
    if !head {
        out.push_str(&body);
    }
    stream.write_all(out.as_bytes()).await?;
    stream.shutdown().await
}

/// The status and the body.
fn answered(line: &str, console: &Console) -> (&'static str, String) {
    let mut words = line.split(' ');
    let (method, target, version) = (words.next(), words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if !version.starts_with("HTTP/1.") {
        return ("400 Bad Request", "this is no request of HTTP/1\n".to_owned());
    }
    if !matches!(method, Some("GET" | "HEAD")) {
        return ("405 Method Not Allowed", "GET and HEAD are answered\n".to_owned());
    }
    match target.split('?').next().unwrap_or_default() {
        "/metrics" => ("200 OK", console.metrics()),
        "/healthz" => ("200 OK", "ok\n".to_owned()),
        "/readyz" => match console.not_ready() {
            None => ("200 OK", "ready\n".to_owned()),
            Some(why) => ("503 Service Unavailable", format!("not ready: {why}\n")),
        },
        _ => ("404 Not Found", "/metrics, /healthz and /readyz are answered\n".to_owned()),
    }
}
