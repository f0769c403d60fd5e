//! Where the repository's files are.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The top folder of the repository this was built from.
pub fn repository_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// Every file below a folder that ends in `.extension`, sorted, as paths from the repository's root.
pub fn files_under(folder: &str, extension: &str) -> Result<Vec<PathBuf>> {
    let root = repository_root();
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).with_context(|| format!("cannot list {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == extension) {
                found.push(path.strip_prefix(&root)?.to_path_buf());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The files git tracks or would track, as paths from the repository's root.
pub fn tracked_files() -> Result<Vec<PathBuf>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(repository_root())
        .output()
        .context("git is needed to list the repository's files")?;
    ensure!(output.status.success(), "git ls-files failed: {}", String::from_utf8_lossy(&output.stderr));
    let listing = String::from_utf8_lossy(&output.stdout);
    Ok(listing.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect())
}
