//! Replays what the fuzz target of the dialect begins with, and whatever it once found.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../../../fuzz/bodies/dialect.rs"]
mod dialect;

#[test]
fn statements() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/dialect");
    let mut files = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        for cut in 0..=bytes.len() {
            dialect::run(&bytes[..cut]);
        }
        files += 1;
    }
    assert!(files > 0, "the corpus is empty");
}
