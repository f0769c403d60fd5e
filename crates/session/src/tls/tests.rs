#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use super::*;

struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> Self {
        let files = Self { folder: tempfile::tempdir().unwrap() };
        files.certify("first.example.org");
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), Permissions::from_mode(0o600)).unwrap();
    }

    /// A new certificate with its key.
    fn certify(&self, name: &str) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap();
        self.write("server.crt", &certificate.pem());
        self.write("server.key", &key.serialize_pem());
    }

    fn options(&self) -> TlsOptions {
        TlsOptions {
            certificate: self.path("server.crt"),
            key: self.path("server.key"),
            client_ca: None,
            version_min: TlsVersion::V1_2,
        }
    }
}

fn names(tls: &Tls) -> Vec<String> {
    tls.status().certificate.identities
}

#[test]
fn files_of_no_use_are_named() {
    let files = Files::new();
    assert!(Tls::open(files.options()).is_ok());
    let refused = |options: TlsOptions| Tls::open(options).unwrap_err().to_string();
    let expect = |options: TlsOptions, parts: &[&str]| {
        let message = refused(options);
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    };
    let missing = files.path("missing");
    expect(TlsOptions { certificate: missing.clone(), ..files.options() }, &["cannot read", "missing: No such file"]);
    expect(TlsOptions { key: missing.clone(), ..files.options() }, &["cannot read", "missing: No such file"]);
    expect(TlsOptions { client_ca: Some(missing), ..files.options() }, &["cannot read", "missing: No such file"]);
    files.write("empty", "nothing to see here");
    let empty = files.path("empty");
    expect(TlsOptions { certificate: empty.clone(), ..files.options() }, &["there is no certificate in", "empty"]);
    expect(TlsOptions { key: empty.clone(), ..files.options() }, &["there is no private key in", "empty"]);
    expect(TlsOptions { client_ca: Some(empty), ..files.options() }, &["there is no certificate in", "empty"]);
    files.write("damaged", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let damaged = files.path("damaged");
    expect(TlsOptions { certificate: damaged.clone(), ..files.options() }, &["damaged cannot be read"]);
    expect(TlsOptions { client_ca: Some(damaged), ..files.options() }, &["damaged cannot be used"]);
    files.write("other.key", &KeyPair::generate().unwrap().serialize_pem());
    let other = TlsOptions { key: files.path("other.key"), ..files.options() };
    expect(other, &["server.crt cannot be used with the key in", "other.key"]);
    fs::set_permissions(files.path("server.key"), Permissions::from_mode(0o604)).unwrap();
    expect(files.options(), &["server.key can be read by everybody", "0604"]);
    fs::set_permissions(files.path("server.key"), Permissions::from_mode(0o640)).unwrap();
    assert!(Tls::open(files.options()).is_ok());
}

#[test]
fn what_changes_is_loaded_and_what_is_bad_is_not() {
    let files = Files::new();
    let tls = Tls::open(files.options()).unwrap();
    assert!(matches!(tls.reload(), Reload::Unchanged));
    files.certify("second.example.org");
    assert!(matches!(tls.reload(), Reload::Loaded));
    assert_eq!(names(&tls), ["rcgen self signed cert", "second.example.org"]);

    files.write("server.crt", "not a certificate");
    assert!(matches!(tls.reload(), Reload::Kept(TlsError::CertificateMissing(_))));
    assert!(matches!(tls.reload(), Reload::Unchanged), "it is said once");
    fs::remove_file(files.path("server.crt")).unwrap();
    assert!(matches!(tls.reload(), Reload::Kept(TlsError::Read { .. })));
    assert!(matches!(tls.reload(), Reload::Unchanged));
    assert_eq!(names(&tls), ["rcgen self signed cert", "second.example.org"]);
    assert!(tls.status().failure.unwrap().starts_with("cannot read "));

    files.certify("third.example.org");
    assert!(matches!(tls.reload(), Reload::Loaded));
    assert_eq!(names(&tls), ["rcgen self signed cert", "third.example.org"]);
    assert_eq!(tls.status().failure, None);
}
