//! Questions of one member to another.

use std::time::Duration;

use bytes::BytesMut;
use switchyard_wire::member::{self, FRAME_BYTES_MAX, Nonces, Said};
use tokio::io::{self, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::passage::{PassageError, Target, greet};

/// How much is read at once, in bytes.
const READ_BYTES: usize = 4096;

/// A connection on which one member asks and another one answers, in turns. Both prove with every word that they know the
/// cluster's secret.
#[derive(Debug)]
pub struct Channel<S = TcpStream> {
    stream: S,
    read: BytesMut,
    secret: Vec<u8>,
    nonces: Nonces,
    number: u64,
}

impl Channel {
    /// Connects to a member of the cluster that has this secret.
    ///
    /// # Errors
    /// When nobody answers in time, or whoever does is no member.
    pub async fn open(target: &Target, secret: &[u8], ms_max: u64) -> Result<Self, PassageError> {
        let opened = async {
            let Some((mut stream, nonces)) = greet(target, secret).await? else { return Ok(None) };
            let mut out = BytesMut::new();
            member::open_channel(&mut out, secret, &nonces);
            stream.write_all_buf(&mut out).await?;
            Ok(Some(Self::new(stream, BytesMut::new(), secret, nonces)))
        };
        match timeout(Duration::from_millis(ms_max), opened).await {
            Err(_) => Err(PassageError::Time { target: target.clone(), ms_max }),
            Ok(Err(source)) => Err(PassageError::Unreachable { target: target.clone(), source }),
            Ok(Ok(None)) => Err(PassageError::Stranger { target: target.clone() }),
            Ok(Ok(Some(channel))) => Ok(channel),
        }
    }

    /// Ready when the other side is gone: between two questions nothing else can come.
    pub async fn gone(&mut self) {
        let _ = self.stream.peek(&mut [0]).await;
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Channel<S> {
    /// A channel that is open, with what was read of it already.
    pub fn new(stream: S, ahead: BytesMut, secret: &[u8], nonces: Nonces) -> Self {
        Self { stream, read: ahead, secret: secret.to_vec(), nonces, number: 0 }
    }

    /// Asks, and gives the answer.
    ///
    /// # Errors
    /// When it does not come in time, or is not the other member's. The channel is of no use then.
    pub async fn ask(&mut self, question: &[u8], ms_max: u64) -> io::Result<BytesMut> {
        let asked = async {
            self.number = self.number.wrapping_add(1);
            self.say(Said::Question, question).await?;
            self.hear(Said::Answer).await?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
        };
        timeout(Duration::from_millis(ms_max), asked).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// The next question; nothing when the other member has gone.
    ///
    /// # Errors
    /// When it is not the other member's.
    pub async fn question(&mut self) -> io::Result<Option<BytesMut>> {
        self.number = self.number.wrapping_add(1);
        self.hear(Said::Question).await
    }

    /// Answers it.
    ///
    /// # Errors
    /// When the other member is gone.
    pub async fn answer(&mut self, answer: &[u8]) -> io::Result<()> {
        self.say(Said::Answer, answer).await
    }

    async fn say(&mut self, said: Said, body: &[u8]) -> io::Result<()> {
        let mut out = BytesMut::new();
        member::say(&mut out, &self.secret, &self.nonces, (said, self.number), body);
        self.stream.write_all_buf(&mut out).await?;
        self.stream.flush().await
    }

    async fn hear(&mut self, said: Said) -> io::Result<Option<BytesMut>> {
        loop {
            if let Some(length) = self.read.first_chunk::<4>() {
                let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
                if length > FRAME_BYTES_MAX {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                if self.read.len() >= length.saturating_add(4) {
                    let _length = self.read.split_to(4);
                    let frame = self.read.split_to(length);
                    let body = member::heard(&self.secret, &self.nonces, (said, self.number), &frame);
                    return body.map(|body| Some(body.into())).ok_or_else(|| io::ErrorKind::InvalidData.into());
                }
            }
            self.read.reserve(READ_BYTES);
            match self.stream.read_buf(&mut self.read).await? {
                0 if self.read.is_empty() => return Ok(None),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const NONCES: Nonces = Nonces { hello: [1; 32], welcome: [2; 32] };

    fn pair(secret: &[u8], other: &[u8]) -> (Channel<io::DuplexStream>, Channel<io::DuplexStream>) {
        let (one, two) = io::duplex(64);
        (Channel::new(one, BytesMut::new(), secret, NONCES), Channel::new(two, BytesMut::new(), other, NONCES))
    }

    #[tokio::test]
    async fn questions_are_answered_in_turns() {
        let (mut asks, mut answers) = pair(b"secret", b"secret");
        let answering = tokio::spawn(async move {
            while let Some(question) = answers.question().await.unwrap() {
                answers.answer(&question.repeat(2)).await.unwrap();
            }
        });
        for question in [&b"a"[..], &[7; 1_000], b""] {
            assert_eq!(asks.ask(question, 10_000).await.unwrap(), question.repeat(2));
        }
        drop(asks);
        answering.await.unwrap();
    }

    #[tokio::test]
    async fn whoever_does_not_know_the_secret_is_not_heard() {
        let (mut asks, mut answers) = pair(b"secret", b"another");
        let asked = tokio::spawn(async move { asks.ask(b"a", 10_000).await });
        assert_eq!(answers.question().await.unwrap_err().kind(), io::ErrorKind::InvalidData);
        drop(answers);
        assert!(asked.await.unwrap().is_err());
    }

    #[tokio::test]
    async fn a_question_that_was_asked_before_is_not_heard() {
        let (mut one, two) = io::duplex(4_096);
        let mut answers = Channel::new(two, BytesMut::new(), b"secret", NONCES);
        let mut out = BytesMut::new();
        member::say(&mut out, b"secret", &NONCES, (Said::Question, 1), b"again");
        let twice = out.repeat(2);
        one.write_all(&twice).await.unwrap();
        assert_eq!(answers.question().await.unwrap().unwrap(), b"again"[..]);
        assert!(answers.question().await.is_err());
    }

    #[tokio::test]
    async fn what_is_too_long_is_not_waited_for() {
        let (mut one, two) = io::duplex(64);
        let mut answers = Channel::new(two, BytesMut::new(), b"secret", NONCES);
        one.write_all(&u32::MAX.to_be_bytes()).await.unwrap();
        assert_eq!(answers.question().await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
