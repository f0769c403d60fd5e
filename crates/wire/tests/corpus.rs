//! Replays what the fuzz targets begin with, and whatever one of them once found.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../../../fuzz/bodies/messages.rs"]
mod messages;
#[path = "../../../fuzz/bodies/scram.rs"]
mod scram;
#[path = "../../../fuzz/bodies/startup.rs"]
mod startup;
#[path = "../../../fuzz/bodies/vertica.rs"]
mod vertica;

/// Runs every file of a target's corpus, whole and cut everywhere.
fn replay(target: &str, run: fn(&[u8])) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        for cut in 0..=bytes.len() {
            run(&bytes[..cut]);
        }
        files += 1;
    }
    assert!(files > 0, "the corpus of {target} is empty");
}

#[test]
fn startup_packets() {
    replay("startup", startup::run);
}

#[test]
fn typed_messages() {
    replay("messages", messages::run);
}

#[test]
fn scram_exchanges() {
    replay("scram", scram::run);
}

#[test]
fn clients_of_vertica() {
    replay("vertica", vertica::run);
}
