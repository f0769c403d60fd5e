//! Clients that other members, or balancers, pass on; and those that are passed on from here.

use switchyard_wire::WireError;
use switchyard_wire::member::{self, IntroducedTls, Introduction, Nonces, WELCOME_BYTES};

use super::*;
use crate::routing::Balance;

const SECRET: &str = "of the cluster";

fn destination(host: &str, port: u16) -> Destination {
    Destination { host: host.to_owned(), port }
}

/// To where clients are told to go; members go the same way.
fn elsewhere_to(host: &str, port: u16) -> Balance {
    Balance::Elsewhere { told: destination(host, port), passed: destination(host, port) }
}

fn routed(balance: Balance) -> Context {
    let routing = Routing {
        proxy_networks: vec!["10.0.0.0/24".parse().unwrap()],
        member_secret: Box::new(|| Some(Secret::new(SECRET))),
        decide: Box::new(move |_, _| balance.clone()),
        ..Routing::default()
    };
    Context { routing, ..context() }
}

fn start_at(peer: Peer, context: Context) -> (DuplexStream, Running) {
    let (client, server) = duplex(64 * 1024);
    (client, tokio::spawn(async move { establish(server, peer, context.begin_login(), &context).await }))
}

async fn elsewhere(running: Running) -> Elsewhere<DuplexStream> {
    match running.await.unwrap().unwrap() {
        Established::Elsewhere(elsewhere) => *elsewhere,
        other => unreachable!("{other:?}"),
    }
}

async fn answered<const N: usize>(balance: Balance, peer: Peer) -> [u8; N] {
    let (mut stream, _running) = start_at(peer, routed(balance));
    stream.write_all(LOAD_BALANCE_REQUEST).await.unwrap();
    let mut answer = [0; N];
    stream.read_exact(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn vertica_clients_are_told_where_to_go() {
    let there = elsewhere_to("10.0.0.9", 5433);
    assert_eq!(&answered::<18>(there, peer()).await, b"Y\0\0\0\x11\0\0\x15\x3910.0.0.9\0");
    assert_eq!(&answered::<1>(Balance::Here, peer()).await, b"N");
    // The member that was called is told as the one to call, where the address is the very one.
    let chosen = || Balance::Chosen(destination("10.0.0.1", 5433));
    let called = peer().calling("10.0.0.1:5433".parse().unwrap());
    assert_eq!(&answered::<18>(chosen(), called).await, b"Y\0\0\0\x11\0\0\x15\x3910.0.0.1\0");
    let translated = peer().calling("192.168.0.1:5433".parse().unwrap());
    assert_eq!(&answered::<1>(chosen(), translated).await, b"N");
}

#[tokio::test]
async fn a_client_that_cannot_be_sent_to_ipv6_is_passed_on() {
    let (mut stream, running) = start(routed(elsewhere_to("::1", 5434)));
    stream.write_all(LOAD_BALANCE_REQUEST).await.unwrap();
    assert_eq!(stream.read_u8().await.unwrap(), b'N');
    let packet = startup((3 << 16) + 5, &[("user", "mira")]);
    stream.write_all(&packet).await.unwrap();
    let elsewhere = elsewhere(running).await;
    assert_eq!(elsewhere.destination(), &destination("::1", 5434));
    assert_eq!(elsewhere.secret_bytes(), 4);
    assert_eq!(elsewhere.into_parts().unwrap().1, packet);
}

#[tokio::test]
async fn postgresql_clients_that_ask_are_passed_on_with_all_they_sent() {
    for asking in [("connection_load_balance", "on"), ("options", "-c geqo=off -c connection_load_balance=true")] {
        let (mut stream, running) = start(routed(elsewhere_to("10.0.0.9", 5433)));
        let mut bytes = startup(V3_0 + 2, &[("user", "mira"), asking]);
        bytes.extend_from_slice(b"Q\0\0\0\x05;");
        stream.write_all(&bytes).await.unwrap();
        let elsewhere = elsewhere(running).await;
        assert_eq!(elsewhere.secret_bytes(), 32);
        let introduction = elsewhere.introduction(4711, vec![7; 32].into());
        assert_eq!(introduction.client, peer().address());
        assert_eq!(introduction.tls, None);
        let (stream_here, ahead) = elsewhere.into_parts().unwrap();
        assert_eq!(ahead, bytes);
        drop(stream_here);
        // It has been told nothing.
        let mut told = Vec::new();
        stream.read_to_end(&mut told).await.unwrap();
        assert_eq!(told, b"");
    }
}

#[tokio::test]
async fn who_does_not_ask_or_is_best_off_here_stays() {
    let there = || elsewhere_to("10.0.0.9", 5433);
    let here = || Balance::Chosen(destination("10.0.0.1", 5433));
    for (parameter, balance) in [
        (("x", "y"), there()),
        (("connection_load_balance", "off"), there()),
        (("options", "-c connection_load_balance=on -c connection_load_balance=off"), there()),
        (("connection_load_balance", "on"), Balance::Here),
        (("connection_load_balance", "on"), here()),
    ] {
        let (mut stream, running) = start(routed(balance));
        stream.write_all(&startup(V3_0, &[("user", "trusted"), parameter])).await.unwrap();
        assert_eq!(client(running).await.user.name.as_str(), "trusted");
    }
}

#[tokio::test]
async fn who_cannot_be_passed_on_is_served_here() {
    let context = Arc::new(routed(elsewhere_to("10.0.0.9", 5433)));
    let (mut stream, server) = duplex(64 * 1024);
    stream.write_all(&startup(V3_0, &[("user", "trusted"), ("connection_load_balance", "on")])).await.unwrap();
    let established = establish(server, peer(), context.begin_login(), &context).await.unwrap();
    let Established::Elsewhere(elsewhere) = established else { unreachable!("{established:?}") };
    let established = elsewhere.establish_here(&context).await.unwrap();
    let Established::Client(client) = established else { unreachable!("{established:?}") };
    assert_eq!(client.user.name.as_str(), "trusted");
}

/// Plays another member, which says hello.
async fn greeted() -> (DuplexStream, Running, Nonces) {
    let (mut stream, running) = start_at(peer(), routed(elsewhere_to("10.0.0.9", 5433)));
    let mut out = BytesMut::new();
    member::hello(&mut out, &[9; 32]);
    stream.write_all_buf(&mut out).await.unwrap();
    let mut answer = [0; WELCOME_BYTES];
    stream.read_exact(&mut answer).await.unwrap();
    let nonces = member::welcomed(SECRET.as_bytes(), [9; 32], &answer).unwrap();
    (stream, running, nonces)
}

#[tokio::test]
async fn another_member_opens_a_channel_if_it_knows_the_secret() {
    let (mut stream, running, nonces) = greeted().await;
    let mut out = BytesMut::new();
    member::open_channel(&mut out, SECRET.as_bytes(), &nonces);
    out.extend_from_slice(b"a question");
    stream.write_all_buf(&mut out).await.unwrap();
    let established = running.await.unwrap().unwrap();
    let Established::Member { ahead, nonces: known, .. } = established else { unreachable!("{established:?}") };
    assert_eq!((&ahead[..], known), (&b"a question"[..], nonces));

    let (mut stream, running, nonces) = greeted().await;
    member::open_channel(&mut out, b"another", &nonces);
    stream.write_all_buf(&mut out).await.unwrap();
    let error = running.await.unwrap().unwrap_err();
    assert!(matches!(error, SessionError::Wire(switchyard_wire::WireError::MemberProof)), "{error:?}");
}

#[tokio::test]
async fn a_member_that_drains_takes_superusers_only() {
    let routing = || Routing { draining: Box::new(|| Name::parse("n1").ok()), ..Routing::default() };
    let (mut stream, running) = start(Context { routing: routing(), ..context() });
    stream.write_all(&startup(V3_0, &[("user", "trusted")])).await.unwrap();
    let error = running.await.unwrap().unwrap_err();
    assert!(matches!(&error, SessionError::Draining(node) if node.as_str() == "n1"), "{error:?}");
    // Whoever cannot prove who he is is not told.
    let (mut stream, running) = start(Context { routing: routing(), ..context() });
    stream.write_all(&startup(V3_0, &[("user", "rejected")])).await.unwrap();
    assert!(matches!(running.await.unwrap().unwrap_err(), SessionError::Rejected { .. }));
}

/// Plays another member: says hello and introduces, then says `bytes` for the client.
async fn introduced_as(introduction: &Introduction, secret: &[u8], bytes: &[u8]) -> (DuplexStream, Running) {
    let (mut stream, running, nonces) = greeted().await;
    let mut out = BytesMut::new();
    member::introduce(&mut out, secret, &nonces, introduction);
    out.extend_from_slice(bytes);
    stream.write_all_buf(&mut out).await.unwrap();
    (stream, running)
}

fn introduction() -> Introduction {
    let client = Some("192.0.2.7:50123".parse().unwrap());
    Introduction { client, process_id: 4711, secret: vec![1, 2, 3, 4].into(), tls: None }
}

#[tokio::test]
async fn a_client_of_another_member_is_who_that_member_says() {
    let tls =
        IntroducedTls { version: "TLSv1.3".into(), cipher: "x".into(), end_point: vec![7; 32], certificate: None };
    let introduction = Introduction { tls: Some(tls), ..introduction() };
    // It wants to be balanced, and has been.
    let packet = startup(V3_0, &[("user", "trusted"), ("connection_load_balance", "on")]);
    let (_stream, running) = introduced_as(&introduction, SECRET.as_bytes(), &packet).await;
    let client = client(running).await;
    assert_eq!(client.peer.address(), introduction.client);
    assert_eq!(client.session.client, introduction.client);
    assert_eq!(client.session.process_id, 4711);
    assert_eq!(client.session.secret(), [1, 2, 3, 4]);
    assert_eq!(client.session.tls.as_ref().unwrap().version, "TLSv1.3");
}

#[tokio::test]
async fn the_channel_of_a_passed_on_client_can_be_bound_to() {
    let offered = |end_point: Vec<u8>| async move {
        let tls = IntroducedTls { version: "TLSv1.3".into(), cipher: "x".into(), end_point, certificate: None };
        let introduction = Introduction { tls: Some(tls), ..introduction() };
        let packet = startup(V3_0, &[("user", "mira")]);
        let (mut stream, _running) = introduced_as(&introduction, SECRET.as_bytes(), &packet).await;
        let mut header = [0; 9];
        stream.read_exact(&mut header).await.unwrap();
        let mut mechanisms = vec![0; usize::from(header[4]) - 8];
        stream.read_exact(&mut mechanisms).await.unwrap();
        String::from_utf8(mechanisms).unwrap().replace('\0', " ").trim_end().to_owned()
    };
    assert_eq!(offered(vec![7; 32]).await, "SCRAM-SHA-256-PLUS SCRAM-SHA-256");
    assert_eq!(offered(vec![]).await, "SCRAM-SHA-256");
}

#[tokio::test]
async fn who_does_not_know_the_secret_introduces_nobody() {
    let packet = startup(V3_0, &[("user", "trusted")]);
    let (_stream, running) = introduced_as(&introduction(), b"another", &packet).await;
    let error = running.await.unwrap().unwrap_err();
    assert!(matches!(error, SessionError::Wire(switchyard_wire::WireError::MemberProof)), "{error:?}");
}

#[tokio::test]
async fn an_introduction_without_a_hello_and_a_late_hello_are_refused() {
    let (mut introduced, mut hello) = (BytesMut::new(), BytesMut::new());
    let nonces = Nonces { hello: [0; 32], welcome: [0; 32] };
    member::introduce(&mut introduced, SECRET.as_bytes(), &nonces, &introduction());
    member::hello(&mut hello, &[9; 32]);
    let late = [SSL_REQUEST, &hello].concat();
    for bytes in [&introduced[..], &late] {
        let (mut stream, running) = start_at(peer(), routed(Balance::Here));
        for part in bytes.chunks(8) {
            // The request for encryption is to be answered before anything else is said.
            stream.write_all(part).await.unwrap();
            tokio::task::yield_now().await;
        }
        let error = running.await.unwrap().unwrap_err();
        assert!(matches!(error, SessionError::Wire(_) | SessionError::BytesAfterRequest(_)), "{error:?}");
    }
    // Where no member is known, no hello is answered.
    let (answer, _) = told(context(), &hello).await;
    assert!(fields(&answer).contains("C28000"), "{}", fields(&answer));
}

const HEADER: &[u8] = b"PROXY TCP4 192.0.2.7 10.0.0.1 50123 5433\r\n";

#[tokio::test]
async fn a_balancer_says_who_its_client_is() {
    let packet = startup(V3_0, &[("user", "trusted")]);
    let (mut stream, running) = start_at(peer(), routed(Balance::Here));
    stream.write_all(&[HEADER, &packet].concat()).await.unwrap();
    assert_eq!(client(running).await.session.client, Some("192.0.2.7:50123".parse().unwrap()));
    // It need not say so, and may speak for itself.
    for header in [&b""[..], b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0", b"PROXY UNKNOWN\r\n", b"\r\n\r\n\0\r\nQUIT\n\x21\0\0\0"]
    {
        let (mut stream, running) = start_at(peer(), routed(Balance::Here));
        stream.write_all(&[header, &packet].concat()).await.unwrap();
        assert_eq!(client(running).await.session.client, peer().address());
    }
}

#[tokio::test]
async fn nobody_else_may_speak_for_others() {
    let packet = startup(V3_0, &[("user", "trusted")]);
    let stranger = Peer::tcp("10.0.1.7:4711".parse().unwrap());
    // The second header comes from a network that is trusted, if one believed it.
    let twice = [b"PROXY TCP4 10.0.0.8 10.0.0.1 1 2\r\n", HEADER, &packet].concat();
    let unix = [b"\r\n\r\n\0\r\nQUIT\n\x21\x31\0\xd8".as_slice(), &[0; 216], &packet].concat();
    for (peer, bytes, expected) in [
        (stranger, [HEADER, &packet].concat(), WireError::ProxyHeader),
        (peer(), twice, WireError::ProxyHeaderLate),
        (peer(), unix, WireError::ProxyAddress),
    ] {
        let (mut stream, running) = start_at(peer, routed(Balance::Here));
        stream.write_all(&bytes).await.unwrap();
        let error = running.await.unwrap().unwrap_err();
        assert!(matches!(&error, SessionError::Wire(error) if *error == expected), "{error:?}");
    }
}
