//! The superuser's first password, when nobody chose one.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rand::RngExt;
use switchyard_catalog::Secret;
use tracing::warn;

/// How many characters a generated password has; at 5 bits each.
const PASSWORD_LENGTH: usize = 26;

/// Letters and digits that cannot be taken for one another.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Makes a directory only its owner can enter, and the ones above it.
///
/// # Errors
/// When it is not there and cannot be made.
pub(crate) fn make_data_dir(path: &Path) -> anyhow::Result<()> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.with_context(|| format!("cannot make the data directory {}", path.display()))
}

/// The superuser's password for a catalog that is about to be made.
pub(crate) struct FirstPassword {
    /// The password.
    pub(crate) password: Secret,
    /// The file it is in, when it was generated.
    pub(crate) path: Option<PathBuf>,
    /// The directory that was made for the file.
    directory: Option<PathBuf>,
}

impl FirstPassword {
    /// One that somebody chose.
    pub(crate) fn chosen(password: Secret) -> Self {
        Self { password, path: None, directory: None }
    }

    /// Makes up a password and writes it to a file only its owner can read, in a directory that is made if need be.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn generate(data_dir: &Path) -> anyhow::Result<Self> {
        let directory = (!data_dir.exists()).then(|| data_dir.to_owned());
        make_data_dir(data_dir)?;
        let password = random_password(&mut rand::rng());
        let path = data_dir.join("dbadmin.password");
        write_secret(&path, &password).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { password: Secret::new(password), path: Some(path), directory })
    }

    /// Removes what was written for it, when the user it is for is no more.
    pub(crate) fn remove(self) {
        if let Some(path) = self.path
            && let Err(error) = fs::remove_file(&path)
        {
            warn!(path = %path.display(), %error, "the file with the password cannot be removed");
        }
        // A directory in which something else has come to be stays.
        let _removed = self.directory.map(fs::remove_dir);
    }
}

fn random_password(random: &mut impl rand::CryptoRng) -> String {
    (0..PASSWORD_LENGTH)
        .filter_map(|_| ALPHABET.get(random.random_range(0..ALPHABET.len())))
        .map(|byte| char::from(*byte))
        .collect()
}

/// Written beside and renamed: whatever was at `path`, a link included, is replaced and not followed.
fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("password.new");
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    path.parent().map_or(Ok(()), |directory| fs::File::open(directory)?.sync_all())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail")]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_password_replaces_what_was_there_and_only_the_owner_reads_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("dbadmin.password");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();

        let first = FirstPassword::generate(directory.path()).unwrap();
        assert_eq!(first.path.as_ref(), Some(&path));
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", first.password.reveal()));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        first.remove();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_made_for_the_password_goes_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = directory.path().join("data");
        FirstPassword::generate(&data_dir).unwrap().remove();
        assert!(!data_dir.exists());
    }

    #[test]
    fn passwords_are_long_and_differ() {
        let (one, two) = (random_password(&mut rand::rng()), random_password(&mut rand::rng()));
        assert_eq!(one.len(), PASSWORD_LENGTH);
        assert_ne!(one, two);
    }

    #[test]
    fn the_data_directory_is_the_owners_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b");
        make_data_dir(&path).unwrap();
        make_data_dir(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
