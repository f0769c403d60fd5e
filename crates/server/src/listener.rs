//! From sockets to sessions: binding, and accepting until told to stop.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use futures::FutureExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, watch};
use tracing::{debug, warn};

/// How many connections wait to be accepted.
const BACKLOG: u32 = 1_024;

/// How long accepting rests when the system has nothing left to accept with.
const PAUSE: Duration = Duration::from_millis(100);

/// Listens on all addresses.
///
/// # Errors
/// When one of them cannot be listened on.
pub(crate) async fn bind(addresses: &[SocketAddr]) -> anyhow::Result<Vec<(SocketAddr, TcpListener)>> {
    let mut listeners = Vec::with_capacity(addresses.len());
    for address in addresses {
        let failed = || format!("cannot listen on {address}");
        let listener = TcpListener::bind(address).await.with_context(failed)?;
        listeners.push((listener.local_addr().with_context(failed)?, listener));
    }
    Ok(listeners)
}

/// The same, on addresses that another process of this user may listen on too, if it lets others do so.
///
/// # Errors
/// When one of them cannot be listened on.
pub(crate) fn bind_shared(addresses: &[SocketAddr]) -> anyhow::Result<Vec<(SocketAddr, TcpListener)>> {
    let bound = |address: &SocketAddr| -> io::Result<(SocketAddr, TcpListener)> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.set_reuseport(true)?;
        socket.bind(*address)?;
        let listener = socket.listen(BACKLOG)?;
        Ok((listener.local_addr()?, listener))
    };
    addresses.iter().map(|address| bound(address).with_context(|| format!("cannot listen on {address}"))).collect()
}

/// Hands every connection to `handle`, each in a task of its own, until `stop` says true. A task holds a clone of
/// `alive` as long as it runs, so that the other end sees when the last one has ended.
pub(crate) async fn accept<H, F>(
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
    alive: mpsc::Sender<Infallible>,
    handle: H,
) where
    H: Fn(TcpStream, SocketAddr) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let mut exhausted = false;
    let mut stopped = false;
    loop {
        let accepted = if stopped {
            // Whoever has called before is served: closing would reset what waits.
            let Some(Ok(accepted)) = listener.accept().now_or_never() else { return };
            Ok(accepted)
        } else {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stopped| *stopped) => {
                    stopped = true;
                    continue;
                }
                accepted = listener.accept() => accepted,
            }
        };
        match accepted {
            Ok((stream, peer)) => {
                exhausted = false;
                // Answers are written whole; waiting to fill a segment only delays them.
                if let Err(error) = stream.set_nodelay(true) {
                    debug!(%peer, %error, "cannot turn off Nagle's algorithm");
                }
                let session = handle(stream, peer);
                let alive = alive.clone();
                tokio::spawn(async move {
                    session.await;
                    drop(alive);
                });
            }
            Err(error) if concerns_one_connection(&error) => debug!(%error, "a client left before it was accepted"),
            Err(error) => {
                // Said once and not ten times a second.
                if !exhausted {
                    warn!(%error, "cannot accept connections; trying again until it works");
                }
                exhausted = true;
                tokio::select! {
                    _ = stop.wait_for(|stopped| *stopped) => return,
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
        }
    }
}

/// Whether an error of `accept` is about the connection at hand. All others, such as too many open files, leave the
/// connection in the queue: accepting again at once would spin.
fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail")]

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn sessions_outlive_the_listener_and_their_end_is_seen() {
        let (address, listener) = bind(&["127.0.0.1:0".parse().unwrap()]).await.unwrap().pop().unwrap();
        assert_ne!(address.port(), 0);
        let (stop, stopped) = watch::channel(false);
        let (alive, mut ended) = mpsc::channel(1);
        let accepting = tokio::spawn(accept(listener, stopped, alive, |mut stream, _peer| async move {
            let mut byte = [0];
            stream.read_exact(&mut byte).await.unwrap();
            stream.write_all(&byte).await.unwrap();
        }));

        let mut client = TcpStream::connect(address).await.unwrap();
        // A second connection answered shows that the first has been accepted.
        let mut second = TcpStream::connect(address).await.unwrap();
        second.write_all(b"y").await.unwrap();
        second.read_exact(&mut [0]).await.unwrap();

        stop.send(true).unwrap();
        accepting.await.unwrap();
        assert!(TcpStream::connect(address).await.is_err());
        assert!(matches!(ended.try_recv(), Err(mpsc::error::TryRecvError::Empty)));

        client.write_all(b"x").await.unwrap();
        let mut answer = [0];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"x");
        assert_eq!(ended.recv().await, None);
    }

    #[test]
    fn only_errors_of_one_connection_are_retried_at_once() {
        for (code, at_once) in
            [(103, true), (104, true), (4, true), (24, false), (23, false), (105, false), (12, false)]
        {
            assert_eq!(concerns_one_connection(&io::Error::from_raw_os_error(code)), at_once, "errno {code}");
        }
    }

    #[tokio::test]
    async fn an_address_in_use_is_named() {
        let (address, _listener) = bind(&["127.0.0.1:0".parse().unwrap()]).await.unwrap().pop().unwrap();
        let error = bind(&[address]).await.unwrap_err();
        let text = format!("{error:#}");
        assert!(text.starts_with(&format!("cannot listen on {address}: Address already in use")), "{text}");
    }
}
