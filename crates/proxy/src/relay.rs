//! Bytes from one side to the other, and back.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy_bidirectional_with_sizes};

/// How much is held of each direction, in bytes. Who reads slowly is waited for: nothing more is taken from the other
/// side.
const BUFFER_BYTES: usize = 8 * 1024;

/// How many bytes went which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// To the server.
    pub to_server: u64,
    /// To the client.
    pub to_client: u64,
}

/// Moves bytes between a client and a server, `ahead` to the server first, until both have ended. When one ends, the
/// other is told, and may say what it has to say.
///
/// # Errors
/// When a side breaks off. Both streams are dropped then.
pub async fn relay<C, S>(mut client: C, ahead: &[u8], mut server: S) -> io::Result<Moved>
where
    C: AsyncRead + AsyncWrite + Unpin,
    S: AsyncRead + AsyncWrite + Unpin,
{
    server.write_all(ahead).await?;
    let (to_server, to_client) =
        copy_bidirectional_with_sizes(&mut client, &mut server, BUFFER_BYTES, BUFFER_BYTES).await?;
    let ahead = u64::try_from(ahead.len()).unwrap_or_default();
    Ok(Moved { to_server: to_server.saturating_add(ahead), to_client })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use tokio::io::{AsyncReadExt, duplex};

    use super::*;

    #[tokio::test]
    async fn both_directions_are_moved_and_each_end_is_passed_on() {
        let (mut client, client_here) = duplex(64);
        let (mut server, server_here) = duplex(64);
        let relaying = tokio::spawn(async move { relay(client_here, b"first ", server_here).await });
        client.write_all(b"then").await.unwrap();
        client.shutdown().await.unwrap();
        let mut received = String::new();
        server.read_to_string(&mut received).await.unwrap();
        assert_eq!(received, "first then");
        // The client has ended, and still hears the answer: more than any buffer holds.
        let answer = vec![7; 100_000];
        let (sent, heard) = tokio::join!(
            async {
                server.write_all(&answer).await.unwrap();
                server.shutdown().await.unwrap();
            },
            async {
                let mut heard = Vec::new();
                client.read_to_end(&mut heard).await.unwrap();
                heard
            }
        );
        let () = sent;
        assert_eq!(heard, answer);
        assert_eq!(relaying.await.unwrap().unwrap(), Moved { to_server: 10, to_client: 100_000 });
    }
}
