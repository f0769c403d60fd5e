//! Certificates of an authority made for one test.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// An authority, with a folder that holds its certificate and what it certifies.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    /// A new one. Its certificate is `ca.crt`.
    pub fn new() -> Result<Self> {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, "authority");
        let key = KeyPair::generate()?;
        let certificate = parameters.self_signed(&key)?;
        let authority = Self { issuer: Issuer::new(parameters, key), folder: tempfile::tempdir()? };
        authority.write("ca.crt", &certificate.pem())?;
        Ok(authority)
    }

    /// Certifies a common name for use on loopback: writes `<file>.crt` and `<file>.key`, over what was there.
    pub fn certify(&self, file: &str, name: &str) -> Result<()> {
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let mut parameters = CertificateParams::new(names.to_vec())?;
        parameters.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate()?;
        let certificate = parameters.signed_by(&key, &self.issuer)?;
        self.write(&format!("{file}.key"), &key.serialize_pem())?;
        self.write(&format!("{file}.crt"), &certificate.pem())
    }

    /// The path of one of its files.
    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// Writes a file only its owner can read, as libpq wants keys to be.
    pub fn write(&self, file: &str, text: &str) -> Result<()> {
        // Beside and renamed: whoever reads it at this moment sees the old one or the new one.
        let beside = self.path(&format!("{file}.new"));
        fs::write(&beside, text)?;
        fs::set_permissions(&beside, Permissions::from_mode(0o600))?;
        Ok(fs::rename(beside, self.path(file))?)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}
