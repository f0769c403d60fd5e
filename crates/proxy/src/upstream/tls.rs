//! TLS to an upstream, as libpq's modes name it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use thiserror::Error as ThisError;

use super::url::{Server, SslMode};

/// Why TLS to an upstream cannot even begin.
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum UpstreamTlsError {
    /// A file is not there, or is not what it should be.
    #[error("cannot read {}", .0.display())]
    File(PathBuf),
    /// The server is to be verified, and nothing says by what.
    #[error("sslmode \"{0}\" needs sslrootcert in the URL of the upstream")]
    RootMissing(&'static str),
    /// A certificate without key, or the other way round.
    #[error("sslcert and sslkey in the URL of the upstream belong together")]
    KeyMissing,
    /// What is configured does not fit together.
    #[error("TLS to the upstream cannot be set up: {0}")]
    Setup(String),
}

/// The configuration for a server.
///
/// # Errors
/// When files are missing or damaged.
pub(super) fn config(server: &Server) -> Result<ClientConfig, UpstreamTlsError> {
    let provider = Arc::new(ring::default_provider());
    let setup = |error: &dyn std::fmt::Display| UpstreamTlsError::Setup(error.to_string());
    let verifier: Arc<dyn ServerCertVerifier> = match (server.ssl_mode, &server.root_certificate) {
        (SslMode::VerifyCa | SslMode::VerifyFull, None) => {
            return Err(UpstreamTlsError::RootMissing(server.ssl_mode.as_str()));
        }
        // As libpq: where there is an authority, "require" means that it is asked.
        (mode @ (SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull), Some(path)) => {
            let roots = Arc::new(roots(path)?);
            let inner = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
            Arc::new(Chain { inner: inner.map_err(|error| setup(&error))?, any_name: mode != SslMode::VerifyFull })
        }
        _ => Arc::new(Anybody(Arc::clone(&provider))),
    };
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| setup(&error))?.dangerous().with_custom_certificate_verifier(verifier);
    match (&server.certificate, &server.key) {
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(certificate), Some(key)) => {
            let damaged = |_| UpstreamTlsError::File(key.clone());
            let key = PrivateKeyDer::from_pem_file(key).map_err(damaged)?;
            builder.with_client_auth_cert(certificates(certificate)?, key).map_err(|error| setup(&error))
        }
        _ => Err(UpstreamTlsError::KeyMissing),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, UpstreamTlsError> {
    let damaged = || UpstreamTlsError::File(path.to_owned());
    let read = CertificateDer::pem_file_iter(path).map_err(|_| damaged())?;
    let certificates: Vec<_> = read.collect::<Result<_, _>>().map_err(|_| damaged())?;
    if certificates.is_empty() { Err(damaged()) } else { Ok(certificates) }
}

fn roots(path: &Path) -> Result<RootCertStore, UpstreamTlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|_| UpstreamTlsError::File(path.to_owned()))?;
    }
    Ok(roots)
}

/// Verifies that an authority stands for the certificate, and where wanted, that it is for the host.
#[derive(Debug)]
struct Chain {
    inner: Arc<WebPkiServerVerifier>,
    any_name: bool,
}

impl ServerCertVerifier for Chain {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // The name is looked at last: whatever else is wrong is said first.
        match self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.any_name => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Encrypts to whoever answers, as `require` and less mean it.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
