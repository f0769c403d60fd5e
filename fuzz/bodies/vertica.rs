//! A client of Vertica: its startup packet, and the typed messages behind it.

use switchyard_wire::startup::STARTUP_BYTES_MAX;
use switchyard_wire::vertica::startup::VERSION_MAX;
use switchyard_wire::vertica::{Wishes, authentication, frontend, value};
use switchyard_wire::{Untyped, frame, untyped};

const BYTES_MAX: usize = 1 << 20;

/// Reads untyped packets as long as there are any, then frames, each body as everything it could be.
pub fn run(data: &[u8]) {
    let (mut rest, mut asked) = (data, false);
    while let Ok(Some((packet, len))) = untyped(rest, STARTUP_BYTES_MAX) {
        rest = &rest[len..];
        match packet {
            Untyped::LoadBalanceRequest => asked = true,
            Untyped::Startup(startup) => {
                match Wishes::of(&startup, asked) {
                    Ok(Some(wishes)) => {
                        assert!(wishes.effective <= VERSION_MAX && wishes.effective <= wishes.requested);
                    }
                    Ok(None) => assert!(!asked),
                    Err(error) => assert!(!error.to_string().is_empty()),
                }
                break;
            }
            _ => {}
        }
    }
    while let Ok(Some(header)) = frame(rest, BYTES_MAX) {
        let Some(body) = header.body(rest) else { break };
        if let Ok(frontend::Message::Bind(bind)) = frontend::read(header.kind, body) {
            assert_eq!(bind.types.len(), bind.common.parameters.len());
            for bytes in bind.common.parameters.iter().flatten() {
                let _ = value::bytes(bytes);
            }
        }
        let _ = authentication::password(body);
        rest = &rest[header.len..];
    }
}
