#![expect(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

/// With certificates.
mod encrypted;
/// Through others.
mod passed_on;
/// In Vertica's protocol.
mod vertica;

use std::net::SocketAddr;
use std::time::Duration;

use proptest::prelude::*;
use switchyard_catalog::{
    AuthenticationAccess, AuthenticationId, DefaultRoles, Name, Secret, UserId, UserLimits, Verifiers,
};
use switchyard_wire::SqlState;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_postgres::NoTls;

use super::*;

fn user(name: &str, password: Option<&str>) -> User {
    User {
        id: UserId(1),
        name: Name::parse(name).unwrap(),
        superuser: false,
        verifiers: password.map(|password| Verifiers {
            scram: Secret::new(ScramVerifier::make(password, b"0123456789abcdef", 4).text()),
            sha512: Secret::new(""),
            md5: None,
        }),
        locked: name == "locked",
        password_expired: false,
        default_roles: DefaultRoles::None,
        limits: UserLimits::default(),
    }
}

/// Everybody proves by password, but for some users whose name says otherwise.
fn context() -> Context {
    let users = [
        user("mira", Some("sekret")),
        user("locked", Some("sekret")),
        user("passwordless", None),
        user("trusted", None),
        user("fallen", Some("sekret")),
    ];
    let users = users.map(Arc::new);
    Context {
        limits: Limits { throttle_delay_ms_min: 0, ..Limits::default() },
        registry: Registry::new("host"),
        throttle: Arc::new(Throttle::default()),
        mock_secret: MockSecret::derive(b"test"),
        scram_iterations: 4,
        tls: None,
        routing: Routing::default(),
        admit: Box::new(|_, _| Box::pin(async { Admission::Alone })),
        authenticate: Box::new(move |request| LoginDecision {
            client_sessions_max: None,
            md5: false,
            attempts: attempts(match request.user {
                "trusted" | "nobody" => vec![AuthenticationMethod::Trust],
                "rejected" => vec![AuthenticationMethod::Reject, AuthenticationMethod::Trust],
                "certified" => vec![AuthenticationMethod::Tls],
                "fallen" => vec![AuthenticationMethod::Tls, AuthenticationMethod::Hash, AuthenticationMethod::Trust],
                "unrecorded" => vec![],
                _ => vec![AuthenticationMethod::Hash],
            }),
            user: users
                .iter()
                .find(|user| user.name.as_str() == request.user)
                .map(Arc::clone)
                .ok_or(PasswordFailure::UserUnknown),
        }),
    }
}

/// Records of these methods, for any client.
fn attempts(methods: Vec<AuthenticationMethod>) -> Vec<Attempt> {
    let attempt = |method: AuthenticationMethod| Attempt {
        method,
        record: Some(Arc::new(Authentication {
            id: AuthenticationId(1),
            name: Name::parse(method.as_str()).unwrap(),
            method,
            access: AuthenticationAccess::Local,
            enabled: true,
            priority: 0,
            fallthrough: true,
            parameters: Vec::new(),
        })),
    };
    methods.into_iter().map(attempt).collect()
}

fn peer() -> Peer {
    Peer::tcp(SocketAddr::from(([10, 0, 0, 7], 4711)))
}

type Running = JoinHandle<Result<Established<DuplexStream>, SessionError>>;

fn start(context: Context) -> (DuplexStream, Running) {
    let (client, server) = duplex(64 * 1024);
    (client, tokio::spawn(async move { establish(server, peer(), context.begin_login(), &context).await }))
}

fn startup(version: u32, parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = version.to_be_bytes().to_vec();
    for (name, value) in parameters {
        body.extend_from_slice(format!("{name}\0{value}\0").as_bytes());
    }
    body.push(0);
    let length = u32::try_from(body.len() + 4).unwrap();
    [&length.to_be_bytes()[..], &body].concat()
}

const V3_0: u32 = 3 << 16;
const SSL_REQUEST: &[u8] = &[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
const GSS_REQUEST: &[u8] = &[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x30];
const LOAD_BALANCE_REQUEST: &[u8] = &[0, 0, 0, 8, 0x04, 0xd3, 0, 0];
const AUTHENTICATION_OK: &[u8] = b"R\0\0\0\x08\0\0\0\0";

/// Everything the server says to these bytes until it closes, and what it made of them.
async fn told(context: Context, bytes: &[u8]) -> (Vec<u8>, SessionError) {
    let (mut client, running) = start(context);
    client.write_all(bytes).await.unwrap();
    client.shutdown().await.unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    drop(client);
    (answer, running.await.unwrap().expect_err("no session"))
}

async fn refused(bytes: &[u8]) -> String {
    let (answer, _) = told(context(), bytes).await;
    fields(&answer)
}

/// The fields of an ErrorResponse, one after the other.
fn fields(answer: &[u8]) -> String {
    let start = answer.iter().position(|&byte| byte == b'E').expect("an error");
    String::from_utf8_lossy(answer.get(start + 5..).unwrap()).replace('\0', " ").trim_end().to_owned()
}

async fn client(running: Running) -> Client<DuplexStream> {
    match running.await.unwrap().unwrap() {
        Established::Client(client) => *client,
        other => unreachable!("it is a client of this member, not {other:?}"),
    }
}

#[tokio::test]
async fn requests_are_answered_before_startup() {
    let (mut stream, running) = start(context());
    for request in [LOAD_BALANCE_REQUEST, GSS_REQUEST, SSL_REQUEST] {
        // In two writes, as some clients do.
        let (head, tail) = request.split_at(4);
        stream.write_all(head).await.unwrap();
        stream.write_all(tail).await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), b'N');
    }
    let parameters = [("user", "trusted"), ("database", "db"), ("options", "-c x=y"), ("application_name", "test")];
    let mut bytes = startup(V3_0, &parameters);
    bytes.extend_from_slice(b"Q\0\0\0\x05;");
    stream.write_all(&bytes).await.unwrap();
    let client = client(running).await;
    assert_eq!(client.user.name.as_str(), "trusted");
    assert_eq!(client.database.as_deref(), Some("db"));
    assert_eq!(client.parameters.len(), 4);
    assert_eq!(client.version, Version::V3_0);
    assert_eq!(&client.leftover[..], b"Q\0\0\0\x05;");
    assert_eq!(client.session.activity().application, "test");
    assert_eq!(client.session.client, peer().address());
    assert_eq!(client.client_key, None);
    assert_eq!(client.session.method, AuthenticationMethod::Trust);
    assert_eq!(client.session.record.as_ref().unwrap().name.as_str(), "trust");
    assert_eq!(client.session.tls, None);
    let mut answer = [0; 9];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, AUTHENTICATION_OK);
}

#[tokio::test]
async fn versions_are_negotiated() {
    let negotiated = |version, option: &'static str| async move {
        let (mut stream, running) = start(context());
        stream.write_all(&startup(version, &[("user", "trusted"), (option, "1")])).await.unwrap();
        let client = client(running).await;
        assert!(client.parameters.iter().all(|(name, _)| !name.starts_with("_pq_.")));
        let mut answer = Vec::new();
        drop(client.stream);
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer.ends_with(AUTHENTICATION_OK));
        answer.truncate(answer.len() - AUTHENTICATION_OK.len());
        (client.version, client.session.secret().len(), answer)
    };
    assert_eq!(negotiated(V3_0, "x").await, (Version::V3_0, 4, vec![]));
    assert_eq!(negotiated(V3_0 + 2, "x").await, (Version::V3_2, 32, vec![]));
    assert_eq!(negotiated(V3_0 + 1, "x").await, (Version::V3_0, 4, b"v\0\0\0\x0c\0\x03\0\0\0\0\0\0".to_vec()));
    assert_eq!(negotiated(V3_0 + 9999, "x").await, (Version::V3_2, 32, b"v\0\0\0\x0c\0\x03\0\x02\0\0\0\0".to_vec()));
    let option = b"v\0\0\0\x13\0\x03\0\0\0\0\0\x01_pq_.x\0".to_vec();
    assert_eq!(negotiated(V3_0, "_pq_.x").await, (Version::V3_0, 4, option));
}

#[tokio::test]
async fn cancel_requests_are_handed_on() {
    let (mut stream, running) = start(context());
    stream.write_all(&[0, 0, 0, 16, 0x04, 0xd2, 0x16, 0x2e, 0, 0, 0, 9, 1, 2, 3, 4]).await.unwrap();
    let Established::Cancel { process_id: 9, secret, .. } = running.await.unwrap().unwrap() else {
        unreachable!("it is a cancel request");
    };
    assert_eq!(secret[..], [1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn refusals_say_why() {
    let start = |user: &str| startup(V3_0, &[("user", user), ("database", "db")]);
    let login = |user| format!("host \"10.0.0.7\", user \"{user}\", database \"db\", no encryption");
    let fatal = |code: &str, message: String| format!("SFATAL VFATAL C{code} M{message}");
    let rejected = format!("authentication record rejects connection for {}", login("rejected"));
    assert_eq!(refused(&start("rejected")).await, fatal("28000", rejected));
    let unrecorded = format!("no authentication record for {}", login("unrecorded"));
    assert_eq!(refused(&start("unrecorded")).await, fatal("28000", unrecorded));
    let certificate = "connection requires a valid client certificate".to_owned();
    assert_eq!(refused(&start("certified")).await, fatal("28000", certificate));
    assert_eq!(refused(&start("nobody")).await, fatal("28000", "user \"nobody\" does not exist".to_owned()));
    let nameless = "no PostgreSQL user name specified in startup packet".to_owned();
    assert_eq!(refused(&startup(V3_0, &[])).await, fatal("28000", nameless));
    let replication = startup(V3_0, &[("user", "trusted"), ("replication", "database")]);
    assert_eq!(refused(&replication).await, fatal("0A000", "replication connections are not supported".to_owned()));
    let version = "unsupported frontend protocol 2.0: server supports 3.0 to 3.2".to_owned();
    assert_eq!(refused(&startup(2 << 16, &[])).await, fatal("0A000", version));
    let http = "this is not an HTTP server".to_owned();
    assert_eq!(refused(b"GET / HTTP/1.1\r\n\r\n").await, fatal("08P01", http));
    let password = [start("mira"), b"Q\0\0\0\x05;".to_vec()].concat();
    assert_eq!(refused(&password).await, fatal("08P01", "expected SASL response, got message type 81".to_owned()));
    let mechanism = [start("mira"), b"p\0\0\0\x0aX\0\xff\xff\xff\xff".to_vec()].concat();
    let message = "client selected an invalid SASL authentication mechanism".to_owned();
    assert_eq!(refused(&mechanism).await, fatal("08P01", message));
    let long = [0, 0, 0x27, 0x11].to_vec();
    let message = "invalid length of startup packet DThe limit \"startup_bytes_max\" is 10000.".to_owned();
    assert_eq!(refused(&long).await, fatal("08P01", message));
}

#[tokio::test(start_paused = true)]
async fn plaintext_behind_a_request_for_encryption_is_refused() {
    for request in [SSL_REQUEST, GSS_REQUEST] {
        let injected = [request, &startup(V3_0, &[("user", "trusted")])].concat();
        let (answer, error) = told(context(), &injected).await;
        assert!(matches!(error, SessionError::BytesAfterRequest(_)));
        assert_eq!(answer.first(), Some(&b'E'), "neither yes nor no");
        assert!(fields(&answer).contains("received unencrypted data after"));
    }
    let (mut stream, running) = start(context());
    for _ in 0..2 {
        stream.write_all(SSL_REQUEST).await.unwrap();
        let _ = stream.read_u8().await.unwrap();
    }
    drop(stream);
    assert!(matches!(running.await.unwrap(), Err(SessionError::RequestRepeated("SSL"))));
}

#[tokio::test(start_paused = true)]
async fn a_slow_login_is_cut() {
    let begun = Instant::now();
    let (mut stream, running) = start(context());
    // A byte now and then keeps nobody connected.
    let dripping = async {
        for byte in startup(V3_0, &[("user", "mira")]).into_iter().cycle() {
            sleep(Duration::from_secs(7)).await;
            if stream.write_all(&[byte]).await.is_err() {
                break;
            }
        }
    };
    let ((), outcome) = tokio::join!(dripping, running);
    assert!(matches!(outcome.unwrap(), Err(SessionError::LoginTime { ms_max: 60_000 })));
    let (least, most) = (Duration::from_secs(60), Duration::from_secs(75));
    assert!((least..most).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(fields(&answer).starts_with("SFATAL VFATAL C57014 Mcanceling authentication due to timeout"));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_is_cut_too() {
    let (mut stream, server) = duplex(4);
    let context = context();
    let running = tokio::spawn(async move { establish(server, peer(), context.begin_login(), &context).await });
    let bytes = startup(V3_0, &[("user", "mira")]);
    stream.write_all(&bytes).await.unwrap();
    assert!(matches!(running.await.unwrap(), Err(SessionError::LoginTime { .. })));
}

#[tokio::test(start_paused = true)]
async fn the_oldest_login_makes_room_for_the_newest() {
    let context = Arc::new(Context { limits: Limits { logins_max: 1, ..Limits::default() }, ..context() });
    let begin = |context: &Arc<Context>| {
        let (client, server) = duplex(1024);
        let context = Arc::clone(context);
        (client, tokio::spawn(async move { establish(server, peer(), context.begin_login(), &context).await }))
    };
    let (mut silent, silent_running) = begin(&context);
    tokio::task::yield_now().await;
    let (mut stream, running) = begin(&context);
    stream.write_all(&startup(V3_0, &[("user", "trusted")])).await.unwrap();
    client(running).await;
    let mut answer = Vec::new();
    silent.read_to_end(&mut answer).await.unwrap();
    let expected = "SFATAL VFATAL C53300 Msorry, too many logins are under way already DThe limit \"logins_max\" is 1.";
    assert_eq!(fields(&answer), expected);
    assert!(matches!(silent_running.await.unwrap(), Err(SessionError::LoginsMax { logins_max: 1 })));
}

#[tokio::test(start_paused = true)]
async fn a_login_that_waits_for_its_refusal_makes_room_too() {
    let limits = Limits { logins_max: 1, throttle_delay_ms_min: 5_000, ..Limits::default() };
    let context = Arc::new(Context { limits, ..context() });
    let begun = Instant::now();
    let (mut guessing, server) = duplex(1024);
    let running = tokio::spawn({
        let context = Arc::clone(&context);
        async move { establish(server, peer(), context.begin_login(), &context).await }
    });
    guessing.write_all(&startup(V3_0, &[("user", "nobody")])).await.unwrap();
    while context.throttle.addresses() == 0 {
        tokio::task::yield_now().await;
    }
    let _slot = context.registry.begin_login(&context.limits);
    let mut answer = Vec::new();
    guessing.read_to_end(&mut answer).await.unwrap();
    assert!(answer.is_empty(), "whoever does not wait learns nothing");
    assert!(matches!(running.await.unwrap(), Err(SessionError::UserUnknown(_))));
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

/// The next message of the server: its type, length and body.
async fn message_from(stream: &mut DuplexStream) -> Vec<u8> {
    let mut message = vec![0; 5];
    stream.read_exact(&mut message).await.unwrap();
    let header = switchyard_wire::frame(&message, 1000).unwrap().unwrap();
    message.resize(header.len, 0);
    stream.read_exact(message.get_mut(5..).unwrap()).await.unwrap();
    message
}

/// A message of a client.
fn sasl_response(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [b"p", &length.to_be_bytes()[..], body].concat()
}

/// All that an attacker learns from trying a wrong password for a user; and the reason in the log.
async fn attack(user: &str) -> (Vec<u8>, String, String, PasswordFailure) {
    let (mut stream, running) = start(context());
    stream.write_all(&startup(V3_0, &[("user", user)])).await.unwrap();
    let offer = message_from(&mut stream).await;
    stream.write_all(&sasl_response(b"SCRAM-SHA-256\0\0\0\0\x0en,,n=,r=client")).await.unwrap();
    let challenge = message_from(&mut stream).await;
    let challenge = String::from_utf8(challenge.get(9..).unwrap().to_vec()).unwrap();
    let (nonce, salt) = challenge.split_once(",s=").unwrap();
    let proof = format!("c=biws,{nonce},p={}=", "A".repeat(43));
    stream.write_all(&sasl_response(proof.as_bytes())).await.unwrap();
    let answer = fields(&message_from(&mut stream).await);
    drop(stream);
    let Err(SessionError::Password { why, .. }) = running.await.unwrap() else { unreachable!("the proof is wrong") };
    (offer, salt.to_owned(), answer, why)
}

#[tokio::test(start_paused = true)]
async fn unknown_users_look_like_known_ones() {
    let (offer, salt, answer, why) = attack("mira").await;
    assert_eq!(answer, "SFATAL VFATAL C28P01 Mpassword authentication failed for user \"mira\"");
    assert!(salt.ends_with("==,i=4"));
    assert_eq!(why, PasswordFailure::PasswordWrong);
    for (user, reason) in [("unknown", PasswordFailure::UserUnknown), ("passwordless", PasswordFailure::PasswordUnset)]
    {
        let (other_offer, other_salt, other_answer, why) = attack(user).await;
        assert_eq!(other_offer, offer);
        assert_eq!(other_salt.len(), salt.len());
        assert_ne!(other_salt, salt);
        assert_eq!(other_salt, attack(user).await.1, "the same salt each time");
        assert_eq!(other_answer, answer.replace("mira", user));
        assert_eq!(why, reason);
    }
}

#[tokio::test(start_paused = true)]
async fn failed_logins_wait_longer_each_time() {
    let throttle = Arc::new(Throttle::default());
    let mut waits = Vec::new();
    for _ in 0..8 {
        let context = Context { limits: Limits::default(), throttle: Arc::clone(&throttle), ..context() };
        let begun = Instant::now();
        told(context, &startup(V3_0, &[("user", "nobody")])).await;
        waits.push(begun.elapsed().as_millis());
    }
    assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    let context = Context { limits: Limits::default(), throttle, ..context() };
    let begun = Instant::now();
    let (mut stream, running) = start(context);
    stream.write_all(&startup(V3_0, &[("user", "trusted")])).await.unwrap();
    client(running).await;
    assert_eq!(begun.elapsed(), Duration::ZERO, "a login that succeeds waits for nothing");
}

/// A server for one client, and that client's connection.
async fn over_tcp(config: &str) -> (Result<(), tokio_postgres::Error>, Result<Established<TcpStream>, SessionError>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = async {
        let (stream, address) = listener.accept().await.unwrap();
        let context = context();
        let mut established = establish(stream, Peer::tcp(address), context.begin_login(), &context).await;
        if let Ok(Established::Client(client)) = &mut established {
            let mut out = BytesMut::new();
            message::parameter_status(&mut out, "server_version", "15.0");
            message::backend_key_data(&mut out, client.session.process_id, client.session.secret());
            message::ready_for_query(&mut out, message::TransactionStatus::Idle);
            client.stream.write_all(&out).await.unwrap();
        }
        established
    };
    let config = format!("host=127.0.0.1 port={port} {config}");
    let connecting = async { tokio_postgres::connect(&config, NoTls).await.map(drop) };
    tokio::join!(connecting, serving)
}

fn code(result: Result<(), tokio_postgres::Error>) -> (String, String) {
    let error = result.unwrap_err();
    let error = error.as_db_error().expect("an error of the server");
    (error.code().code().to_owned(), error.message().to_owned())
}

#[tokio::test]
async fn a_real_client_logs_in() {
    let (connected, established) = over_tcp("user=mira password=sekret dbname=db").await;
    connected.unwrap();
    let Established::Client(client) = established.unwrap() else { unreachable!("it is a client") };
    let verifier = ScramVerifier::parse(client.user.verifiers.as_ref().unwrap().scram.reveal()).unwrap();
    assert!(verifier.fits("sekret"));
    assert!(client.client_key.is_some());
    assert!(client.leftover.is_empty());
}

#[tokio::test]
async fn a_missing_certificate_falls_through_and_a_wrong_password_does_not() {
    let (connected, established) = over_tcp("user=fallen password=sekret").await;
    connected.unwrap();
    let Established::Client(client) = established.unwrap() else { unreachable!("it is a client") };
    assert!(client.client_key.is_some());
    assert_eq!(code(over_tcp("user=fallen password=wrong").await.0).0, "28P01");
}

#[tokio::test]
async fn a_real_client_is_told_why_not() {
    let failed = |user: &str| {
        (SqlState::InvalidPassword.code().to_owned(), format!("password authentication failed for user \"{user}\""))
    };
    assert_eq!(code(over_tcp("user=mira password=wrong").await.0), failed("mira"));
    assert_eq!(code(over_tcp("user=unknown password=sekret").await.0), failed("unknown"));
    assert_eq!(code(over_tcp("user=passwordless password=sekret").await.0), failed("passwordless"));
    assert_eq!(code(over_tcp("user=locked password=wrong").await.0), failed("locked"));
    let locked = ("28000".to_owned(), "user account \"locked\" is locked".to_owned());
    assert_eq!(code(over_tcp("user=locked password=sekret").await.0), locked);
}

#[tokio::test]
async fn a_refusal_arrives_though_bytes_are_left_unread() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let serving = async {
        let (stream, address) = listener.accept().await.unwrap();
        let context = context();
        establish(stream, Peer::tcp(address), context.begin_login(), &context).await
    };
    let connecting = async {
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let mut bytes = startup(V3_0, &[("user", "rejected")]);
        bytes.resize(32 * 1024, b'x');
        stream.write_all(&bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.map(|_| answer)
    };
    let (established, answer) = tokio::join!(serving, connecting);
    assert!(matches!(established, Err(SessionError::Rejected { .. })));
    assert!(fields(&answer.unwrap()).contains("C28000"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_end_in_an_error_or_a_session(bytes: Vec<u8>, behind_startup: bool) {
        let mut sent = if behind_startup { startup(V3_0, &[("user", "mira")]) } else { Vec::new() };
        sent.extend(bytes);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let ended = runtime.block_on(async {
            let (mut client, running) = start(context());
            client.write_all(&sent).await.unwrap();
            client.shutdown().await.unwrap();
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.unwrap();
            drop(client);
            running.await
        });
        prop_assert!(ended.unwrap().is_err());
    }
}
