//! Looking whether a PostgreSQL server is there, what it is, and how far behind.

use std::io;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use switchyard_wire::{FrameHeader, frame, upstream as protocol};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::line::Stream;
use crate::upstream::{Server, ServerLogin, Upstream, UpstreamError};

/// The longest answer to what is asked, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How much is read at once, in bytes.
const READ_BYTES: usize = 1024;

/// Whether it is a standby, and how many milliseconds what it shows is old: nothing where all that was received is shown.
const QUESTION: &str = "SELECT pg_catalog.pg_is_in_recovery(), CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN NULL \
     WHEN pg_catalog.pg_last_wal_receive_lsn() = pg_catalog.pg_last_wal_replay_lsn() \
      AND EXISTS (SELECT FROM pg_catalog.pg_stat_wal_receiver) THEN 0 \
     ELSE (extract(epoch FROM pg_catalog.clock_timestamp() - pg_catalog.pg_last_xact_replay_timestamp()) * 1000) END::bigint";

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probed {
    /// It answers. What it is can only be asked in a session.
    Answers {
        /// Whether it is a standby.
        in_recovery: Option<bool>,
        /// How far a standby is behind, in milliseconds.
        lag_ms: Option<u64>,
    },
    /// Nobody is there: refused, or the connection was broken.
    Gone(String),
    /// It does not answer, or not as it should.
    Silent(String),
}

/// Looks at one server again and again. The session is kept in between, so that a server that is looked at has neither
/// logins nor lines of its log to show for it.
#[derive(Debug)]
pub struct Prober {
    server: Server,
    login: Option<ServerLogin>,
    session: Option<Stream>,
    /// The server did not let the login in: it is not tried again.
    refused: bool,
}

impl Prober {
    /// Without a login it is only seen whether the server is there.
    pub fn new(server: Server, login: Option<ServerLogin>) -> Self {
        Self { server, login, session: None, refused: false }
    }

    /// Looks.
    pub async fn probe(&mut self, ms_max: u64) -> Probed {
        match timeout(Duration::from_millis(ms_max), self.look(ms_max)).await {
            Ok(found) => found,
            Err(_) => {
                self.session = None;
                Probed::Silent(format!("no answer within {ms_max} ms"))
            }
        }
    }

    /// Ready when the session that is kept is broken by its server; never, while there is none.
    pub async fn broken(&mut self) {
        let Some(session) = &mut self.session else { return std::future::pending().await };
        // Nothing was asked: whatever comes is its end, or says that it is near.
        let _ = session.read_u8().await;
        self.session = None;
    }

    async fn look(&mut self, ms_max: u64) -> Probed {
        let Some(login) = self.login.clone().filter(|_| !self.refused) else { return self.knock().await };
        let mut session = match self.session.take() {
            Some(session) => session,
            None => match Upstream::connect(&self.server, &login, ms_max).await {
                Ok(upstream) => upstream.stream,
                Err(error) => return self.unfound(&error),
            },
        };
        match ask(&mut session).await {
            Ok(found) => {
                self.session = Some(session);
                found
            }
            Err(error) => Probed::Gone(error.to_string()),
        }
    }

    fn unfound(&mut self, error: &UpstreamError) -> Probed {
        let why = error.to_string();
        match error {
            UpstreamError::Unreachable { source, .. } if is_end(source) => Probed::Gone(why),
            // Full, but there.
            error if error.code() == Some("53300") => Probed::Answers { in_recovery: None, lag_ms: None },
            error if error.is_absence() => Probed::Silent(why),
            // Whoever says no is there.
            UpstreamError::Refused { .. } | UpstreamError::ProofMissing { .. } | UpstreamError::Proving { .. } => {
                self.refused = true;
                tracing::warn!(why, "what a server is cannot be asked: the login of its URL is not let in");
                Probed::Answers { in_recovery: None, lag_ms: None }
            }
            _ => Probed::Silent(why),
        }
    }

    /// Asks for TLS and goes: a server says nothing of that in its log.
    async fn knock(&self) -> Probed {
        let knocked = async {
            let target = &self.server.target;
            let mut stream = TcpStream::connect((target.host.as_str(), target.port)).await?;
            let mut out = BytesMut::new();
            protocol::ssl_request(&mut out);
            stream.write_all_buf(&mut out).await?;
            stream.read_u8().await
        };
        match knocked.await {
            Ok(b'S' | b'N') => Probed::Answers { in_recovery: None, lag_ms: None },
            Ok(_) => Probed::Silent("what answers is no PostgreSQL server".to_owned()),
            Err(error) if is_end(&error) => Probed::Gone(error.to_string()),
            Err(error) => Probed::Silent(error.to_string()),
        }
    }
}

fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionRefused | ConnectionReset | UnexpectedEof)
}

async fn ask(session: &mut Stream) -> io::Result<Probed> {
    let mut out = BytesMut::new();
    protocol::query(&mut out, QUESTION);
    session.write_all_buf(&mut out).await?;
    session.flush().await?;
    let (mut read, mut found) = (BytesMut::new(), Probed::Silent("it gives no answer".to_owned()));
    loop {
        let header = frame(&read, ANSWER_BYTES_MAX).map_err(io::Error::other)?;
        let Some(header) = header.filter(|header| header.len <= read.len()) else {
            read.reserve(READ_BYTES);
            if session.read_buf(&mut read).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            continue;
        };
        let body = read.split_to(header.len).freeze().slice(FrameHeader::BYTES..);
        match header.kind {
            b'D' => {
                let mut values = values(&body).into_iter();
                let in_recovery = values.next().flatten().map(|text| text == "t");
                let lag_ms = values.next().flatten().and_then(|text| text.parse().ok());
                found = Probed::Answers { in_recovery, lag_ms };
            }
            b'E' => {
                let fields = protocol::fields(&body);
                let message = fields.into_iter().find(|(kind, _)| *kind == b'M').map(|(_, message)| message);
                found = Probed::Silent(message.unwrap_or_default());
            }
            b'Z' => return Ok(found),
            _ => {}
        }
    }
}

/// The values of a row, as texts.
fn values(mut row: &[u8]) -> Vec<Option<String>> {
    let mut values = Vec::new();
    let Ok(count) = row.try_get_u16() else { return values };
    for _ in 0..count {
        let Ok(length) = row.try_get_i32() else { return values };
        let value = usize::try_from(length).ok().and_then(|length| row.split_at_checked(length));
        values.push(value.map(|(value, _)| String::from_utf8_lossy(value).into_owned()));
        row = value.map_or(row, |(_, rest)| rest);
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_into_values() {
        let row = b"\0\x03\0\0\0\x01t\xff\xff\xff\xff\0\0\0\x0212";
        assert_eq!(values(row), [Some("t".to_owned()), None, Some("12".to_owned())]);
        assert_eq!(values(b"\0\x02\0\0\0\x09t"), [None]);
        assert_eq!(values(b""), Vec::<Option<String>>::new());
    }
}
