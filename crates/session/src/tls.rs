//! TLS: the certificate files, what is made of them, and what is known of an encrypted connection.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoClientAuth, NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use switchyard_wire::{Certificate, CertificateError};
use thiserror::Error;

/// The protocol that a client names by ALPN when it speaks TLS from the first byte on.
pub(crate) const ALPN: &[u8] = b"postgresql";
/// The largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Who else than its owner and its group may read a key: nobody.
const KEY_MODE_FORBIDDEN: u32 = 0o007;

/// The lowest version of TLS that is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2.
    V1_2,
    /// TLS 1.3.
    V1_3,
}

/// Which files, and how they are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsOptions {
    /// The server's certificate and those that lead to its authority, in PEM.
    pub certificate: PathBuf,
    /// The certificate's private key, in PEM.
    pub key: PathBuf,
    /// The authorities whose client certificates are accepted, in PEM. Without it clients are asked for none.
    pub client_ca: Option<PathBuf>,
    /// The lowest version spoken.
    pub version_min: TlsVersion,
}

/// Why certificate files are of no use.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is longer than any of its kind.
    #[error("{} is longer than {FILE_BYTES_MAX} bytes", .0.display())]
    Long(PathBuf),
    /// Others may read the key.
    #[error("private key {} can be read by everybody on this machine: its mode must not be {mode:04o}", path.display())]
    KeyMode {
        /// Which.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A file has no certificate in it.
    #[error("there is no certificate in {}", .0.display())]
    CertificateMissing(PathBuf),
    /// A file has no key in it.
    #[error("there is no private key in {}", .0.display())]
    KeyMissing(PathBuf),
    /// A file is no PEM.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// How.
        reason: String,
    },
    /// The certificate cannot be read.
    #[error("the certificate in {} cannot be read", path.display())]
    Certificate {
        /// Which.
        path: PathBuf,
        /// Why.
        source: CertificateError,
    },
    /// The key cannot be used, or is another certificate's.
    #[error("the certificate in {} cannot be used with the key in {}: {source}", certificate.display(), key.display())]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// The authorities cannot be used.
    #[error("the authorities in {} cannot be used: {reason}", path.display())]
    Authorities {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The provider of cryptography does not speak the versions wanted.
    #[error("no such version of TLS is available")]
    Version(#[source] rustls::Error),
}

/// What came of looking at the files again.
#[derive(Debug)]
pub enum Reload {
    /// They are what they were.
    Unchanged,
    /// New connections get the new certificate.
    Loaded,
    /// They are of no use: new connections get the old certificate. Said once for each content of the files.
    Kept(TlsError),
}

/// The certificate in use, for people.
#[derive(Debug, Clone)]
pub struct TlsStatus {
    /// The files.
    pub options: TlsOptions,
    /// The certificate.
    pub certificate: Certificate,
    /// When it was loaded, in microseconds since 1970-01-01 UTC.
    pub loaded_us: i64,
    /// Why the files as they are now were not loaded.
    pub failure: Option<String>,
}

/// The server's side of TLS, kept up with its files.
pub struct Tls {
    options: TlsOptions,
    state: Mutex<State>,
}

struct State {
    loaded: Arc<Loaded>,
    loaded_us: i64,
    /// The files as they were when they were looked at last.
    seen: Option<Contents>,
    failure: Option<String>,
}

/// What the files make.
pub(crate) struct Loaded {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) certificate: Certificate,
}

/// All files' bytes.
#[derive(Clone, PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: zeroize::Zeroizing<Vec<u8>>,
    client_ca: Option<Vec<u8>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// When they are of no use.
    pub fn open(options: TlsOptions) -> Result<Self, TlsError> {
        let contents = Contents::read(&options)?;
        let loaded = Arc::new(load(&options, &contents)?);
        let state = State { loaded, loaded_us: now_us(), seen: Some(contents), failure: None };
        Ok(Self { options, state: Mutex::new(state) })
    }

    /// Everything that is wrong with the files, where [`Tls::open`] says what it meets first.
    pub fn check(options: &TlsOptions) -> Vec<TlsError> {
        let faults = Contents::faults(options);
        if faults.is_empty() { Self::open(options.clone()).err().into_iter().collect() } else { faults }
    }

    /// Looks at the files again. It reads them: not for a thread that must not block.
    pub fn reload(&self) -> Reload {
        let contents = Contents::read(&self.options);
        let mut state = self.locked();
        let made = match contents {
            Ok(contents) if state.seen.as_ref() == Some(&contents) => return Reload::Unchanged,
            Ok(contents) => {
                let made = load(&self.options, &contents);
                state.seen = Some(contents);
                made
            }
            Err(error) => {
                state.seen = None;
                Err(error)
            }
        };
        match made {
            Ok(loaded) => {
                *state =
                    State { loaded: Arc::new(loaded), loaded_us: now_us(), seen: state.seen.take(), failure: None };
                Reload::Loaded
            }
            Err(error) => {
                let failure = error.to_string();
                if state.failure.as_ref() == Some(&failure) {
                    return Reload::Unchanged;
                }
                state.failure = Some(failure);
                Reload::Kept(error)
            }
        }
    }

    /// The certificate in use.
    pub fn status(&self) -> TlsStatus {
        let state = self.locked();
        TlsStatus {
            options: self.options.clone(),
            certificate: state.loaded.certificate.clone(),
            loaded_us: state.loaded_us,
            failure: state.failure.clone(),
        }
    }

    pub(crate) fn loaded(&self) -> Arc<Loaded> {
        Arc::clone(&self.locked().loaded)
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        // What is written under the lock is whole before it is written.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    fn read(options: &TlsOptions) -> Result<Self, TlsError> {
        let key = zeroize::Zeroizing::new(read(&options.key, |mode| mode & KEY_MODE_FORBIDDEN == 0)?);
        let certificate = read(&options.certificate, |_| true)?;
        let client_ca = options.client_ca.as_deref().map(|path| read(path, |_| true)).transpose()?;
        Ok(Self { certificate, key, client_ca })
    }

    /// Why files cannot be read.
    fn faults(options: &TlsOptions) -> Vec<TlsError> {
        let key = read(&options.key, |mode| mode & KEY_MODE_FORBIDDEN == 0).map(zeroize::Zeroizing::new);
        let others = [Some(&options.certificate), options.client_ca.as_ref()];
        let others = others.into_iter().flatten().filter_map(|path| read(path, |_| true).err());
        others.chain(key.err()).collect()
    }
}

fn read(path: &Path, mode_allowed: impl Fn(u32) -> bool) -> Result<Vec<u8>, TlsError> {
    let failed = |source| TlsError::Read { path: path.to_owned(), source };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.len() > FILE_BYTES_MAX {
        return Err(TlsError::Long(path.to_owned()));
    }
    let mode = metadata.mode() & 0o7777;
    if !mode_allowed(mode) {
        return Err(TlsError::KeyMode { path: path.to_owned(), mode });
    }
    std::fs::read(path).map_err(failed)
}

fn load(options: &TlsOptions, contents: &Contents) -> Result<Loaded, TlsError> {
    let chain = certificates(&options.certificate, &contents.certificate)?;
    let first = chain.first().ok_or_else(|| TlsError::CertificateMissing(options.certificate.clone()))?;
    let certificate = Certificate::parse(first)
        .map_err(|source| TlsError::Certificate { path: options.certificate.clone(), source })?;
    let key = PrivateKeyDer::from_pem_slice(&contents.key).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => TlsError::KeyMissing(options.key.clone()),
        other => TlsError::Damaged { path: options.key.clone(), reason: other.to_string() },
    })?;
    let provider = Arc::new(ring::default_provider());
    let versions: &[_] = match options.version_min {
        TlsVersion::V1_2 => &[&rustls::version::TLS13, &rustls::version::TLS12],
        TlsVersion::V1_3 => &[&rustls::version::TLS13],
    };
    let verifier = match (&options.client_ca, &contents.client_ca) {
        (Some(path), Some(pem)) => {
            let roots = Arc::new(authorities(path, pem)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider));
            // Who shows none may still log in with a password: the authentication records say.
            verifier.allow_unauthenticated().build().map_err(|error| useless(path, &error))?
        }
        _ => Arc::new(NoClientAuth),
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(TlsError::Version)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(|source| TlsError::Pair {
            certificate: options.certificate.clone(),
            key: options.key.clone(),
            source,
        })?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    // Every connection is verified anew: a session resumed would outlive the authorities that vouched for its client.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Loaded { config: Arc::new(config), certificate })
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(found) if found.is_empty() => Err(TlsError::CertificateMissing(path.to_owned())),
        Ok(found) => Ok(found),
        Err(error) => Err(TlsError::Damaged { path: path.to_owned(), reason: error.to_string() }),
    }
}

fn authorities(path: &Path, pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, pem)? {
        roots
            .add(certificate)
            .map_err(|error| TlsError::Authorities { path: path.to_owned(), reason: error.to_string() })?;
    }
    Ok(roots)
}

fn useless(path: &Path, error: &VerifierBuilderError) -> TlsError {
    TlsError::Authorities { path: path.to_owned(), reason: error.to_string() }
}

/// What is known of an encrypted connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFacts {
    /// For example `TLSv1.3`.
    pub version: String,
    /// As IANA calls it, for example `TLS_AES_256_GCM_SHA384`.
    pub cipher: String,
    /// The client's certificate, verified; none when it showed none.
    pub client: Option<Certificate>,
}

impl TlsFacts {
    pub(crate) fn of(connection: &ServerConnection) -> Result<Self, CertificateError> {
        let shown = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let version = connection.protocol_version().and_then(|version| version.as_str());
        let cipher = connection.negotiated_cipher_suite().map(|suite| suite.suite());
        let client = connection.peer_certificates().and_then(|chain| chain.first());
        Ok(Self {
            version: shown(version).replace('_', "."),
            cipher: shown(cipher.and_then(|cipher| cipher.as_str())).replace("TLS13_", "TLS_"),
            client: client.map(|der| Certificate::parse(der)).transpose()?,
        })
    }
}

fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
