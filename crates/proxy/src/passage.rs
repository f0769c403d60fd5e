//! The way of a client to another member.

use std::fmt;
use std::io;
use std::time::Duration;

use bytes::BytesMut;
use rand::Rng;
use switchyard_wire::member::{self, Introduction, Nonces, WELCOME_BYTES};
use switchyard_wire::{CancelKey, startup};
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Where another member is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// Its host: an address or a name.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Why another member takes no client from here.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PassageError {
    /// Nobody answers there.
    #[error("cannot reach {target}")]
    Unreachable {
        /// Where.
        target: Target,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It took too long.
    #[error("{target} did not answer within {ms_max} ms")]
    Time {
        /// Where.
        target: Target,
        /// The limit.
        ms_max: u64,
    },
    /// Whoever answers does not know the cluster's secret.
    #[error("{target} is no member of this cluster")]
    Stranger {
        /// Where.
        target: Target,
    },
}

/// A connection to another member, which knows already whom it is for. What comes next on it is the client's startup
/// packet.
#[derive(Debug)]
pub struct Passage {
    /// The connection.
    pub stream: TcpStream,
    /// Where it leads.
    pub target: Target,
}

impl Passage {
    /// Connects to a member of the cluster that has this secret, and introduces a client.
    ///
    /// # Errors
    /// When nobody answers in time, or whoever does is no member.
    pub async fn open(
        target: Target,
        secret: &[u8],
        introduction: &Introduction,
        ms_max: u64,
    ) -> Result<Self, PassageError> {
        match timeout(Duration::from_millis(ms_max), introduced(&target, secret, introduction)).await {
            Err(_) => Err(PassageError::Time { target, ms_max }),
            Ok(Err(source)) => Err(PassageError::Unreachable { target, source }),
            Ok(Ok(None)) => Err(PassageError::Stranger { target }),
            Ok(Ok(Some(stream))) => Ok(Self { stream, target }),
        }
    }
}

/// The connection; nothing when whoever answers is no member.
async fn introduced(target: &Target, secret: &[u8], introduction: &Introduction) -> io::Result<Option<TcpStream>> {
    let Some((mut stream, nonces)) = greet(target, secret).await? else { return Ok(None) };
    let mut out = BytesMut::new();
    member::introduce(&mut out, secret, &nonces, introduction);
    stream.write_all_buf(&mut out).await?;
    Ok(Some(stream))
}

/// Connects, and makes sure that whoever answers knows the secret; nothing when it does not.
pub(crate) async fn greet(target: &Target, secret: &[u8]) -> io::Result<Option<(TcpStream, Nonces)>> {
    let mut stream = TcpStream::connect((target.host.as_str(), target.port)).await?;
    stream.set_nodelay(true)?;
    let mut hello = [0; 32];
    rand::rng().fill_bytes(&mut hello);
    let mut out = BytesMut::new();
    member::hello(&mut out, &hello);
    stream.write_all_buf(&mut out).await?;
    let mut answer = [0; WELCOME_BYTES];
    match stream.read_exact(&mut answer).await {
        Ok(_) => {}
        // Whoever does not know the word says something short and goes, as PostgreSQL does.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    Ok(member::welcomed(secret, hello, &answer).map(|nonces| (stream, nonces)))
}

impl PassageError {
    /// Whether nobody listens there.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Unreachable { source, .. } if source.kind() == io::ErrorKind::ConnectionRefused)
    }
}

/// Asks another server to stop what a session does, and waits until it has taken that in.
///
/// # Errors
/// When it cannot be reached in time.
pub(crate) async fn cancel(target: &Target, process_id: i32, secret: &CancelKey, ms_max: u64) -> io::Result<()> {
    let asked = async {
        let mut stream = TcpStream::connect((target.host.as_str(), target.port)).await?;
        let mut out = BytesMut::new();
        startup::cancel_request(&mut out, process_id, secret);
        stream.write_all_buf(&mut out).await?;
        stream.shutdown().await?;
        // It answers by closing.
        let _ = stream.read(&mut [0]).await?;
        Ok(())
    };
    timeout(Duration::from_millis(ms_max), asked).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use switchyard_wire::Untyped;
    use tokio::net::TcpListener;

    use super::*;

    const SECRET: &[u8] = b"of the cluster";

    fn introduction() -> Introduction {
        let client = Some("10.8.3.7:50123".parse().unwrap());
        Introduction { client, process_id: 4711, secret: vec![1, 2, 3, 4].into(), tls: None }
    }

    async fn listener() -> (TcpListener, Target) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, Target { host: address.ip().to_string(), port: address.port() })
    }

    async fn packet(stream: &mut TcpStream, read: &mut BytesMut) -> Untyped {
        loop {
            if let Some((packet, len)) = switchyard_wire::untyped(read, 10_000).unwrap() {
                let _ = read.split_to(len);
                return packet;
            }
            stream.read_buf(read).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_member_is_told_of_the_client() {
        let (listener, target) = listener().await;
        let member = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut read = BytesMut::new();
            let Untyped::MemberHello(hello) = packet(&mut stream, &mut read).await else { unreachable!() };
            let nonces = Nonces { hello, welcome: [7; 32] };
            let mut out = BytesMut::new();
            member::welcome(&mut out, SECRET, &nonces);
            stream.write_all_buf(&mut out).await.unwrap();
            let Untyped::MemberIntroduction(body) = packet(&mut stream, &mut read).await else { unreachable!() };
            member::introduced(SECRET, &nonces, &body)
        });
        let passage = Passage::open(target.clone(), SECRET, &introduction(), 60_000).await.unwrap();
        assert_eq!(passage.target, target);
        assert_eq!(member.await.unwrap(), Ok(introduction()));
    }

    #[tokio::test]
    async fn nobody_else_is_told_anything() {
        let (listener, target) = listener().await;
        let stranger = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut read = BytesMut::new();
            let Untyped::MemberHello(hello) = packet(&mut stream, &mut read).await else { unreachable!() };
            let mut out = BytesMut::new();
            member::welcome(&mut out, b"of another cluster", &Nonces { hello, welcome: [7; 32] });
            stream.write_all_buf(&mut out).await.unwrap();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.unwrap();
            rest
        });
        let refused = Passage::open(target.clone(), SECRET, &introduction(), 60_000).await.unwrap_err();
        assert_eq!(refused.to_string(), format!("{target} is no member of this cluster"));
        assert_eq!(stranger.await.unwrap(), b"");
    }

    #[tokio::test]
    async fn who_is_not_there_is_said_so() {
        let (listener, target) = listener().await;
        drop(listener);
        let refused = Passage::open(target.clone(), SECRET, &introduction(), 60_000).await.unwrap_err();
        assert!(matches!(&refused, PassageError::Unreachable { .. }), "{refused:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_answer_is_not_waited_for_without_end() {
        let (_listener, target) = listener().await;
        let refused = Passage::open(target.clone(), SECRET, &introduction(), 1_000).await.unwrap_err();
        assert_eq!(refused.to_string(), format!("{target} did not answer within 1000 ms"));
    }
}
