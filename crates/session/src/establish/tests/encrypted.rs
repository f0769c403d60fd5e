use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use switchyard_catalog::IDENTITY_MAP;
use tempfile::TempDir;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;
use crate::tls::{TlsOptions, TlsVersion};

/// An authority, and what it has certified.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = parameters.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(parameters, key), pem }
    }

    /// Certificate and key for a common name.
    fn certify(&self, name: &str) -> (String, String) {
        let mut parameters = CertificateParams::new(vec!["db.example.org".to_owned()]).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        (parameters.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

/// A server that asks for certificates of its authority.
struct Fixture {
    authority: Authority,
    tls: Arc<Tls>,
    _folder: TempDir,
}

impl Fixture {
    fn new(version_min: TlsVersion) -> Self {
        use std::os::unix::fs::PermissionsExt;

        let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
        let (certificate, key) = authority.certify("server");
        let path = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            path
        };
        let options = TlsOptions {
            certificate: path("server.crt", &certificate),
            key: path("server.key", &key),
            client_ca: Some(path("ca.crt", &authority.pem)),
            version_min,
        };
        Self { tls: Arc::new(Tls::open(options).unwrap()), authority, _folder: folder }
    }

    fn context(&self) -> Context {
        Context { tls: Some(Arc::clone(&self.tls)), ..context() }
    }

    /// What a client connects with: its certificate, and the protocols it names.
    fn connector(&self, shown: Option<(String, String)>, protocols: &[&[u8]]) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS12])
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match shown {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => config
                .with_client_auth_cert(
                    vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                    PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
                )
                .unwrap(),
        };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        TlsConnector::from(Arc::new(config))
    }
}

fn server_name() -> ServerName<'static> {
    ServerName::try_from("db.example.org").unwrap()
}

/// TLS as psql begins it.
async fn secure(mut stream: DuplexStream, connector: &TlsConnector) -> std::io::Result<TlsStream<DuplexStream>> {
    stream.write_all(SSL_REQUEST).await.unwrap();
    assert_eq!(stream.read_u8().await.unwrap(), b'S');
    connector.connect(server_name(), stream).await
}

#[tokio::test]
async fn sessions_are_encrypted() {
    let fixture = Fixture::new(TlsVersion::V1_2);
    let (stream, running) = start(fixture.context());
    let mut stream = secure(stream, &fixture.connector(None, &[])).await.unwrap();
    stream.write_all(&startup(V3_0, &[("user", "trusted")])).await.unwrap();
    let mut answer = [0; 9];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, AUTHENTICATION_OK);
    let client = client(running).await;
    let facts = client.session.tls.as_ref().unwrap();
    assert_eq!(facts.version, "TLSv1.2");
    assert!(facts.cipher.starts_with("TLS_ECDHE_"), "{}", facts.cipher);
    assert_eq!(facts.client, None);
}

#[tokio::test]
async fn tls_may_begin_at_the_first_byte_if_the_protocol_is_named() {
    let fixture = Fixture::new(TlsVersion::V1_2);
    let (stream, running) = start(fixture.context());
    let connector = fixture.connector(None, &[b"postgresql"]);
    let mut stream = connector.connect(server_name(), stream).await.unwrap();
    stream.write_all(&startup(V3_0, &[("user", "trusted")])).await.unwrap();
    client(running).await;

    let (stream, running) = start(fixture.context());
    let mut stream = fixture.connector(None, &[]).connect(server_name(), stream).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(fields(&answer).starts_with("SFATAL VFATAL C08P01 Mreceived direct TLS connection request without ALPN"));
    drop(stream);
    assert!(matches!(running.await.unwrap(), Err(SessionError::ProtocolUnnamed)));

    // Another protocol's client is sent away by TLS itself.
    let (stream, running) = start(fixture.context());
    assert!(fixture.connector(None, &[b"h2"]).connect(server_name(), stream).await.is_err());
    assert!(matches!(running.await.unwrap(), Err(SessionError::Handshake(_))));
}

#[tokio::test]
async fn tls_does_not_begin_twice() {
    let fixture = Fixture::new(TlsVersion::V1_2);
    let connector = fixture.connector(None, &[b"postgresql"]);
    for direct in [false, true] {
        let (stream, running) = start(fixture.context());
        let mut stream = match direct {
            true => connector.connect(server_name(), stream).await.unwrap(),
            false => secure(stream, &connector).await.unwrap(),
        };
        stream.write_all(SSL_REQUEST).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(fields(&answer).ends_with("Mreceived SSL request twice"), "{}", fields(&answer));
        drop(stream);
        assert!(matches!(running.await.unwrap(), Err(SessionError::RequestRepeated("SSL"))));
        let (stream, _running) = start(fixture.context());
        let mut stream = secure(stream, &connector).await.unwrap();
        stream.write_all(&[0x16, 3, 1, 0, 5]).await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(answer.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn plaintext_before_the_handshake_is_never_honoured() {
    let fixture = Fixture::new(TlsVersion::V1_2);
    let injected = [SSL_REQUEST, &startup(V3_0, &[("user", "trusted")])].concat();
    let (answer, error) = told(fixture.context(), &injected).await;
    assert!(matches!(error, SessionError::BytesAfterRequest("SSL")));
    assert_eq!(answer.first(), Some(&b'E'), "neither yes nor no");
    // What comes later, but before the handshake, is taken for the handshake.
    let (mut stream, running) = start(fixture.context());
    stream.write_all(SSL_REQUEST).await.unwrap();
    assert_eq!(stream.read_u8().await.unwrap(), b'S');
    stream.write_all(&startup(V3_0, &[("user", "trusted")])).await.unwrap();
    assert!(matches!(running.await.unwrap(), Err(SessionError::Handshake(_))));
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_never_ends_is_cut() {
    let fixture = Fixture::new(TlsVersion::V1_2);
    for begin in [&[][..], &[0x16], &[0x16, 3, 1, 2, 0, 1]] {
        let (mut stream, running) = start(fixture.context());
        if begin.is_empty() {
            stream.write_all(SSL_REQUEST).await.unwrap();
        }
        stream.write_all(begin).await.unwrap();
        assert!(matches!(running.await.unwrap(), Err(SessionError::LoginTime { ms_max: 60_000 })), "{begin:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn garbage_ends_the_connection() {
    let fixture = Fixture::new(TlsVersion::V1_2);
    for garbage in [&[0x16; 600][..], &[0x16, 3, 1, 0, 2, 1, 0], &[0x16, 3, 3, 0xff, 0xff, 0, 0], &[0x16, 0, 0, 0, 0]] {
        let (_, error) = told(fixture.context(), garbage).await;
        assert!(matches!(error, SessionError::Handshake(_)), "{error:?}");
    }
}

#[tokio::test]
async fn old_versions_are_refused() {
    let fixture = Fixture::new(TlsVersion::V1_3);
    let (stream, running) = start(fixture.context());
    assert!(secure(stream, &fixture.connector(None, &[])).await.is_err());
    assert!(matches!(running.await.unwrap(), Err(SessionError::Handshake(_))));
}

/// How a login with this certificate ends.
async fn certified(fixture: &Fixture, map: Option<&str>, shown: Option<&str>, user: &str) -> String {
    let mut context = fixture.context();
    let decide = context.authenticate;
    let map = map.map(str::to_owned);
    context.authenticate = Box::new(move |request| {
        let mut decision = decide(request);
        let record = |method| attempts(vec![method]).pop().unwrap().record.unwrap();
        let mut record = Authentication::clone(&record(AuthenticationMethod::Tls));
        record.parameters.extend(map.clone().map(|map| (IDENTITY_MAP.to_owned(), map)));
        decision.attempts = vec![Attempt { method: AuthenticationMethod::Tls, record: Some(Arc::new(record)) }];
        decision
    });
    let (stream, running) = start(context);
    let shown = shown.map(|name| fixture.authority.certify(name));
    let mut stream = secure(stream, &fixture.connector(shown, &[])).await.unwrap();
    stream.write_all(&startup(V3_0, &[("user", user)])).await.unwrap();
    let mut answer = vec![0; 9];
    stream.read_exact(&mut answer).await.unwrap();
    if answer == AUTHENTICATION_OK {
        let client = client(running).await;
        assert_eq!(client.session.method, AuthenticationMethod::Tls);
        return client.session.tls.as_ref().unwrap().client.as_ref().unwrap().subject.clone();
    }
    stream.read_to_end(&mut answer).await.unwrap();
    fields(&answer).split(" M").nth(1).unwrap().to_owned()
}

#[tokio::test]
async fn certificates_name_users() {
    let fixture = Fixture::new(TlsVersion::V1_2);
    let failed = |user: &str| format!("certificate authentication failed for user \"{user}\"");
    assert_eq!(certified(&fixture, None, Some("mira"), "mira").await, "CN=mira");
    assert_eq!(certified(&fixture, None, Some("MIRA"), "mira").await, "CN=MIRA");
    assert_eq!(certified(&fixture, None, Some("mira"), "trusted").await, failed("trusted"));
    assert_eq!(certified(&fixture, None, Some("nobody"), "nobody").await, failed("nobody"));
    assert_eq!(certified(&fixture, None, None, "mira").await, "connection requires a valid client certificate");
    let map = Some("ops-*=*");
    assert_eq!(certified(&fixture, map, Some("ops-mira"), "mira").await, "CN=ops-mira");
    assert_eq!(certified(&fixture, map, Some("mira"), "mira").await, failed("mira"));
    assert_eq!(certified(&fixture, Some("db.example.org=mira"), Some("x"), "mira").await, "CN=x");
    let locked = certified(&fixture, None, Some("locked"), "locked").await;
    assert!(locked.starts_with("user account \"locked\" is locked HA superuser unlocks it"), "{locked}");
}

#[tokio::test]
async fn certificates_of_other_authorities_are_refused() {
    let fixture = Fixture::new(TlsVersion::V1_2);
    let (stream, running) = start(fixture.context());
    let shown = Authority::new().certify("mira");
    let _ = secure(stream, &fixture.connector(Some(shown), &[])).await;
    let error = running.await.unwrap().expect_err("no session");
    assert!(matches!(error, SessionError::Handshake(_)), "{error:?}");
}

/// What the server says to a first message; the proof itself is tried by psql, and byte by byte where it is made.
async fn first_message(fixture: &Fixture, mechanism: &str, first: &str) -> String {
    let (stream, _running) = start(fixture.context());
    let mut stream = secure(stream, &fixture.connector(None, &[])).await.unwrap();
    stream.write_all(&startup(V3_0, &[("user", "mira")])).await.unwrap();
    let mut offer = vec![0; 43];
    stream.read_exact(&mut offer).await.unwrap();
    assert_eq!(offer.get(9..).unwrap(), b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0");
    let length = i32::try_from(first.len()).unwrap().to_be_bytes();
    let body = [mechanism.as_bytes(), b"\0", &length, first.as_bytes()].concat();
    stream.write_all(&sasl_response(&body)).await.unwrap();
    let mut answer = vec![0; 9];
    stream.read_exact(&mut answer).await.unwrap();
    if answer.first() == Some(&b'R') {
        return "challenge".to_owned();
    }
    stream.read_to_end(&mut answer).await.unwrap();
    fields(&answer)
}

#[tokio::test]
async fn a_client_that_was_not_shown_the_offer_is_refused() {
    let fixture = Fixture::new(TlsVersion::V1_2);
    let (plain, plus) = ("SCRAM-SHA-256", "SCRAM-SHA-256-PLUS");
    assert_eq!(first_message(&fixture, plus, "p=tls-server-end-point,,n=,r=c").await, "challenge");
    assert_eq!(first_message(&fixture, plain, "n,,n=,r=c").await, "challenge");
    let downgrade = first_message(&fixture, plain, "y,,n=,r=c").await;
    let expected =
        "SFATAL VFATAL C28000 MSCRAM channel binding negotiation error DThe client supports SCRAM channel binding";
    assert!(downgrade.starts_with(expected), "{downgrade}");
    assert!(first_message(&fixture, plus, "n,,n=,r=c").await.contains("does not include channel binding data"));
    assert!(first_message(&fixture, plain, "p=tls-server-end-point,,n=,r=c").await.contains("C08P01"));
    // Without TLS there is nothing to choose.
    let length = 3_i32.to_be_bytes();
    let chosen =
        [startup(V3_0, &[("user", "mira")]), sasl_response(&[plus.as_bytes(), b"\0", &length, b"n,,"].concat())];
    assert!(refused(&chosen.concat()).await.contains("client selected an invalid SASL authentication mechanism"));
}

#[tokio::test(start_paused = true)]
async fn a_password_goes_as_it_is_through_tls_only() {
    let fixture = Fixture::new(TlsVersion::V1_2);
    for (password, right) in [("sekret", true), ("wrong", false)] {
        let (stream, running) = start(fixture.context());
        let mut stream = secure(stream, &fixture.connector(None, &[])).await.unwrap();
        // Only a verifier for PostgreSQL's clients is kept of this user.
        stream.write_all(&super::vertica::vertica_startup("mira", &[])).await.unwrap();
        let mut request = [0; 9];
        stream.read_exact(&mut request).await.unwrap();
        assert_eq!(&request, b"R\0\0\0\x08\0\0\0\x03");
        let length = u8::try_from(password.len() + 5).unwrap();
        stream.write_all(&[b"p\0\0\0", &[length][..], password.as_bytes(), b"\0"].concat()).await.unwrap();
        if right {
            assert_eq!(client(running).await.user.name.as_str(), "mira");
        } else {
            assert!(matches!(running.await.unwrap(), Err(SessionError::Password { .. })));
        }
    }
}
