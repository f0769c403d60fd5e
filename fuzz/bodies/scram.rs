//! A client that does not know the password.

use switchyard_wire::ScramVerifier;
use switchyard_wire::scram::{Channel, Exchange};

/// The first byte says which channel there is; a zero byte parts the client's two messages.
pub fn run(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let channel = match kind % 3 {
        0 => Channel::Unbound,
        1 => Channel::Declined,
        _ => Channel::Bound(vec![7; 32]),
    };
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let (first, last) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let verifier = ScramVerifier::make("pencil", b"salt", 1);
    if let Ok((challenge, challenged)) = Exchange::new(verifier, channel, &mut rand::rng()).challenge(first) {
        // Whoever answers does so with the server's nonce: the mutations stand for the rest.
        let nonce = challenge.split(',').next().unwrap_or_default();
        let last = String::from_utf8_lossy(last).replace("r=*", nonce);
        assert!(challenged.prove(last.as_bytes()).is_err(), "proved without the password");
    }
}
