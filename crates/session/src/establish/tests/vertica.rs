use md5::Md5;
use sha2::{Digest, Sha512};

use super::*;

const SALT: [u8; 16] = [9; 16];

/// As [`context`], with a user whose password Vertica's clients can prove, too.
fn vertica_context() -> Context {
    let context = context();
    let verifiers = Verifiers {
        scram: Secret::new(ScramVerifier::make("sekret", b"0123456789abcdef", 4).text()),
        sha512: Secret::new(switchyard_wire::Sha512Verifier::make("sekret", SALT).text()),
        md5: Some(Secret::new(switchyard_wire::Md5Verifier::make("sekret", "Moritz").text())),
    };
    let mut moritz = User { verifiers: Some(verifiers.clone()), ..user("Moritz", None) };
    moritz.limits.security_algorithm = Some("MD5".to_owned());
    let moritz = Arc::new(moritz);
    let (user, others) = (Arc::new(User { verifiers: Some(verifiers), ..user("vera", None) }), context.authenticate);
    Context {
        authenticate: Box::new(move |request| match request.user {
            "vera" => LoginDecision {
                attempts: attempts(vec![AuthenticationMethod::Hash]),
                user: Ok(Arc::clone(&user)),
                client_sessions_max: None,
                md5: true,
            },
            "Moritz" | "moritz" => LoginDecision {
                attempts: attempts(vec![AuthenticationMethod::Hash]),
                user: Ok(Arc::clone(&moritz)),
                client_sessions_max: None,
                md5: true,
            },
            _ => others(request),
        }),
        ..context
    }
}

/// A startup packet as Vertica's clients send it.
pub(super) fn vertica_startup(user: &str, parameters: &[(&str, &str)]) -> Vec<u8> {
    let all = [&[("user", user), ("client_type", "test"), ("protocol_compat", "VER")], parameters].concat();
    let texts = startup(0x0003_0005, &all);
    let body = [&texts[4..texts.len() - 1], b"protocol_version\0\0\x03\0\x10\0\0"].concat();
    [&u32::try_from(body.len() + 4).unwrap().to_be_bytes()[..], &body].concat()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The answer to a request for a proof by SHA512.
fn proof(request: &[u8], password: &str) -> Vec<u8> {
    let (session_salt, user_salt) = (&request[9..13], &request[17..33]);
    let inner = hex(&Sha512::new().chain_update(password).chain_update(user_salt).finalize());
    let outer = hex(&Sha512::new().chain_update(inner).chain_update(session_salt).finalize());
    [b"p\0\0\0\x8b", format!("sha512{outer}\0").as_bytes()].concat()
}

async fn request(stream: &mut DuplexStream) -> [u8; 33] {
    let mut request = [0; 33];
    stream.read_exact(&mut request).await.unwrap();
    assert_eq!(&request[..9], b"R\0\0\0\x20\0\x01\x02\0");
    assert_eq!(&request[13..17], [0, 0, 0, 16]);
    request
}

#[tokio::test]
async fn a_password_is_proved_by_sha512() {
    let (mut stream, running) = start(vertica_context());
    let parameters = [("client_label", "job"), ("binary_data_protocol", "1"), ("autocommit", "on"), ("_pq_.x", "1")];
    stream.write_all(&vertica_startup("vera", &parameters)).await.unwrap();
    let request = request(&mut stream).await;
    assert_eq!(request[17..], SALT);
    stream.write_all(&proof(&request, "sekret")).await.unwrap();
    let mut answer = [0; 9];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, AUTHENTICATION_OK);
    let client = client(running).await;
    let version = Version { major: 3, minor: 16 };
    let wishes = Wishes { requested: version, effective: version, autocommit: true, binary: true };
    assert_eq!(client.session.vertica, Some(wishes));
    assert_eq!(client.version, version);
    assert_eq!(client.session.secret().len(), 4);
    assert_eq!(client.session.activity().application, "job");
    assert_eq!(client.parameters.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_or_missing_password_is_refused_alike() {
    for (user, password) in [("vera", "wrong"), ("Nemo", "sekret"), ("passwordless", "sekret"), ("mira", "sekret")] {
        let (mut stream, running) = start(vertica_context());
        stream.write_all(&vertica_startup(user, &[])).await.unwrap();
        let request = request(&mut stream).await;
        stream.write_all(&proof(&request, password)).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let expected = format!("SFATAL C28000 MAuthentication failed for username \"{user}\" V2248 Rauth_failed");
        assert_eq!(fields(&answer), expected);
        drop(stream);
        assert!(matches!(running.await.unwrap(), Err(SessionError::Password { .. })), "{user}");
    }
}

/// Logs in by MD5, and gives what came of it.
async fn by_md5(user: &str, password: &str) -> Result<(), SessionError> {
    let (mut stream, running) = start(vertica_context());
    stream.write_all(&vertica_startup(user, &[])).await.unwrap();
    let mut request = [0; 33];
    stream.read_exact(&mut request).await.unwrap();
    assert_eq!(&request[..9], b"R\0\0\0\x20\0\0\0\x05");
    let inner = hex(&Md5::new().chain_update(password).chain_update(user).finalize());
    let outer = hex(&Md5::new().chain_update(inner).chain_update(&request[9..13]).finalize());
    let answer = [b"p\0\0\0\x28", format!("md5{outer}\0").as_bytes()].concat();
    stream.write_all(&answer).await.unwrap();
    let mut answer = [0; 9];
    stream.read_exact(&mut answer).await.unwrap();
    drop(stream);
    running.await.unwrap().map(|_| ())
}

#[tokio::test(start_paused = true)]
async fn a_password_is_proved_by_md5_where_the_user_says_so() {
    assert!(by_md5("Moritz", "sekret").await.is_ok());
    let wrong = by_md5("Moritz", "wrong").await;
    assert!(matches!(wrong, Err(SessionError::Password { why: PasswordFailure::PasswordWrong, .. })));
    // The name is part of what is hashed.
    let spelled = by_md5("moritz", "sekret").await;
    assert!(matches!(spelled, Err(SessionError::Password { why: PasswordFailure::SpelledOtherwise(_), .. })));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_user_is_asked_for_md5_or_not_by_the_name() {
    let mut asked = Vec::new();
    for number in 0..20 {
        let context = vertica_context();
        let name = format!("Nobody{number}");
        let wanted = if context.mock_secret.chooses_md5(&name.to_lowercase()) { 5 } else { 0x0001_0200_u32 };
        let authenticate = context.authenticate;
        let authenticate = move |request: &LoginRequest<'_>| LoginDecision { md5: true, ..authenticate(request) };
        let (mut stream, _running) = start(Context { authenticate: Box::new(authenticate), ..context });
        stream.write_all(&vertica_startup(&name, &[])).await.unwrap();
        let mut request = [0; 33];
        stream.read_exact(&mut request).await.unwrap();
        assert_eq!(request[5..9], wanted.to_be_bytes(), "{name}");
        asked.push(wanted);
    }
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(asked.len(), 2, "both kinds are asked for");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_user_is_shown_the_same_salt_again() {
    let mut salts = Vec::new();
    for user in ["nemo", "NEMO", "nora"] {
        let (mut stream, _running) = start(vertica_context());
        stream.write_all(&vertica_startup(user, &[])).await.unwrap();
        salts.push(request(&mut stream).await[17..].to_vec());
    }
    assert_eq!(salts[0], salts[1]);
    assert_ne!(salts[0], salts[2]);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_password_is_refused() {
    for (bytes, message) in [
        (&b"Q\0\0\0\x05;"[..], "C08P01 Mexpected password response, got message type 81 V0"),
        (b"p\0\0\0\x06ab", "C08P01 Minvalid Password message V0"),
        (b"p\0\0\xff\xff", "C08P01 Minvalid message length V0"),
    ] {
        let (mut stream, _running) = start(vertica_context());
        stream.write_all(&[&vertica_startup("vera", &[]), bytes].concat()).await.unwrap();
        request(&mut stream).await;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert_eq!(fields(&answer), format!("SFATAL {message}"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_expired_password_is_told_so() {
    let context = vertica_context();
    let verifiers = |request: &LoginRequest<'_>| match (context.authenticate)(request).user {
        Ok(user) => user,
        Err(_) => unreachable!("vera is known"),
    };
    let request = LoginRequest { user: "vera", peer: peer(), tls: false };
    let expired = Arc::new(User { password_expired: true, ..User::clone(&verifiers(&request)) });
    let context = Context {
        authenticate: Box::new(move |_| LoginDecision {
            client_sessions_max: None,
            md5: true,
            attempts: attempts(vec![AuthenticationMethod::Hash]),
            user: Ok(Arc::clone(&expired)),
        }),
        ..self::context()
    };
    let (mut stream, running) = start(context);
    stream.write_all(&vertica_startup("vera", &[])).await.unwrap();
    let request = self::request(&mut stream).await;
    stream.write_all(&proof(&request, "sekret")).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert_eq!(&answer[..9], b"R\0\0\0\x08\0\0\0\x09");
    assert!(fields(&answer).starts_with("SFATAL C28000 Mthe password of user \"vera\" has expired"));
    drop(stream);
    assert!(matches!(running.await.unwrap(), Err(SessionError::PasswordExpired(_))));
}

#[tokio::test(start_paused = true)]
async fn trust_and_refusals_are_as_for_others() {
    let (mut stream, running) = start(vertica_context());
    stream.write_all(&vertica_startup("trusted", &[])).await.unwrap();
    client(running).await;
    let mut answer = [0; 9];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, AUTHENTICATION_OK);
    let answer = refused(&vertica_startup("rejected", &[])).await;
    assert!(answer.starts_with("SFATAL C28000 Mauthentication record rejects connection for host"), "{answer}");
    assert!(answer.ends_with("V2248 Rauth_failed"), "{answer}");
    let old = [&b"\0\0\0\x1f\0\x03\0\x05protocol_version\0\0\x02\0\0\0\0"[..]].concat();
    let message = "unsupported frontend protocol 2.0: server supports 3.0 to 3.16";
    assert_eq!(refused(&old).await, format!("SFATAL C0A000 M{message} V0"));
}

#[tokio::test]
async fn whoever_asks_for_a_better_server_is_a_client_of_vertica() {
    let (mut stream, running) = start(context());
    stream.write_all(LOAD_BALANCE_REQUEST).await.unwrap();
    assert_eq!(stream.read_u8().await.unwrap(), b'N');
    stream.write_all(&startup(V3_0, &[("user", "trusted")])).await.unwrap();
    assert!(client(running).await.session.vertica.is_some());
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_twice_is_told_so_in_its_protocol() {
    let twice = [LOAD_BALANCE_REQUEST, LOAD_BALANCE_REQUEST].concat();
    let (answer, error) = told(context(), &twice).await;
    assert_eq!(answer.first(), Some(&b'N'));
    assert_eq!(fields(&answer), "SFATAL C08P01 Mreceived load balance request twice V0");
    assert!(matches!(error, SessionError::RequestRepeated("load balance")));
}
