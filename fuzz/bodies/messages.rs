//! Typed messages of a client, and the certificate it may show.

use switchyard_wire::message::sasl_initial_response;
use switchyard_wire::{Certificate, frame, frontend};

const BYTES_MAX: usize = 1 << 20;

/// Follows frames as long as there are any, and reads each body as everything it could be.
pub fn run(data: &[u8]) {
    let _ = Certificate::parse(data);
    let mut rest = data;
    while let Ok(Some(header)) = frame(rest, BYTES_MAX) {
        assert!((5..=BYTES_MAX + 1).contains(&header.len));
        let Some(body) = header.body(rest) else { break };
        assert_eq!(body.len() + 5, header.len);
        let _ = frontend::read(header.kind, body);
        let _ = sasl_initial_response(body);
        rest = &rest[header.len..];
    }
}
