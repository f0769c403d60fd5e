//! Refuses a message longer than allowed when its header is read, before memory is taken for it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The longest message a client may send, in bytes: a statement of 16 MiB and its frame.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024 + 1024;

/// A byte stream whose incoming frames are followed by their headers.
#[derive(Debug)]
pub(crate) struct Limited<S> {
    stream: S,
    frames: Frames,
}

/// Where in a frame the stream is.
#[derive(Debug, Default)]
struct Frames {
    header: [u8; 5],
    header_len: usize,
    body_left: usize,
    too_long: Option<usize>,
}

impl Frames {
    fn follow(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.too_long.is_none() {
            if self.body_left > 0 {
                let skip = self.body_left.min(bytes.len());
                self.body_left -= skip;
                bytes = bytes.get(skip..).unwrap_or_default();
                continue;
            }
            let Some((first, rest)) = bytes.split_first() else { return };
            if let Some(place) = self.header.get_mut(self.header_len) {
                *place = *first;
            }
            self.header_len += 1;
            bytes = rest;
            if self.header_len == self.header.len() {
                let [_, a, b, c, d] = self.header;
                let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
                self.header_len = 0;
                self.body_left = length.saturating_sub(4);
                if length > MESSAGE_BYTES_MAX {
                    self.too_long = Some(length);
                }
            }
        }
    }
}

/// A message was longer than [`MESSAGE_BYTES_MAX`].
#[derive(Debug, thiserror::Error)]
#[error("message of {length} bytes is longer than {MESSAGE_BYTES_MAX} bytes")]
pub(crate) struct TooLong {
    pub(crate) length: usize,
}

impl<S> Limited<S> {
    /// Follows a stream of which these bytes have been read already.
    pub(crate) fn new(stream: S, leftover: &[u8]) -> Self {
        let mut frames = Frames::default();
        frames.follow(leftover);
        Self { stream, frames }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Limited<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Some(length) = self.frames.too_long {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, TooLong { length })));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let read = buf.filled().get(before..).unwrap_or_default();
        self.frames.follow(read);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Limited<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::Frames;

    #[test]
    fn frames_are_followed_over_any_cut() {
        let mut bytes = Vec::new();
        for body in [0usize, 1, 7, 300] {
            bytes.push(b'Q');
            bytes.extend_from_slice(&u32::try_from(body + 4).unwrap_or_default().to_be_bytes());
            bytes.extend(std::iter::repeat_n(0xff, body));
        }
        bytes.extend_from_slice(&[b'Q', 0x7f, 0xff, 0xff, 0xff]);
        for cut in 0..bytes.len() {
            let (first, second) = bytes.split_at(cut);
            let mut frames = Frames::default();
            frames.follow(first);
            assert_eq!(frames.too_long, None, "nothing is too long before the last header is whole");
            frames.follow(second);
            assert_eq!(frames.too_long, Some(0x7fff_ffff));
        }
        let mut frames = Frames::default();
        frames.follow(&[b'Q', 0, 0, 0, 4, b'S']);
        assert_eq!((frames.too_long, frames.header_len), (None, 1));
    }
}
