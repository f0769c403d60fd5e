//! What comes before the first typed message.

use switchyard_wire::startup::STARTUP_BYTES_MAX;
use switchyard_wire::{Untyped, Version, options, untyped};

/// Reads packets as long as there are any, and the first of them again from every shorter piece.
pub fn run(data: &[u8]) {
    let whole = untyped(data, STARTUP_BYTES_MAX);
    for cut in 0..data.len().min(300) {
        if let Ok(Some(early)) = untyped(&data[..cut], STARTUP_BYTES_MAX) {
            assert_eq!(whole.as_ref(), Ok(&Some(early)), "more bytes change nothing");
        }
    }
    let mut rest = data;
    while let Ok(Some((packet, len))) = untyped(rest, STARTUP_BYTES_MAX) {
        assert!((8..=STARTUP_BYTES_MAX).contains(&len) && len <= rest.len());
        if let Untyped::Startup(mut startup) = packet {
            let negotiated = startup.negotiate();
            assert!([Version::V3_0, Version::V3_2].contains(&negotiated.version));
            assert!(startup.parameters.iter().all(|(name, _)| !name.starts_with("_pq_.")));
            let _ = startup.parameter("options").map(options::settings);
        }
        rest = &rest[len..];
    }
}
