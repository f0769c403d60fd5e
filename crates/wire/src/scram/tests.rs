#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;

const CLIENT_FIRST: &str = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
const SERVER_FIRST: &str = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
const CLIENT_FINAL: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                            p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
const SERVER_FINAL: &str = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

fn example() -> Exchange {
    let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
    Exchange {
        verifier: ScramVerifier::make("pencil", &salt, 4096),
        channel: Channel::Unbound,
        nonce: SERVER_NONCE.to_owned(),
    }
}

/// One iteration, so that many exchanges cost little.
fn quick() -> Exchange {
    over(Channel::Unbound)
}

fn over(channel: Channel) -> Exchange {
    Exchange { verifier: ScramVerifier::make("pencil", b"salt", 1), channel, nonce: "server".to_owned() }
}

/// The last message of a client that knows this password.
fn client_final(password: &str, header: impl AsRef<[u8]>, challenged: &Challenged) -> String {
    let mut salted = Key::default();
    let verifier = &challenged.verifier;
    pbkdf2::pbkdf2_hmac::<sha2::Sha256>(password.as_bytes(), &verifier.salt, verifier.iterations, &mut salted);
    let client_key = hmac(&salted, &[b"Client Key"]);
    let without_proof = format!("c={},r={}", BASE64.encode(header), challenged.nonce);
    let signed = format!("{},{},{without_proof}", challenged.client_first_bare, challenged.server_first);
    let mut proof = hmac(&sha256(&client_key), &[signed.as_bytes()]);
    for (byte, key) in proof.iter_mut().zip(client_key) {
        *byte ^= key;
    }
    format!("{without_proof},p={}", BASE64.encode(proof))
}

#[test]
fn the_example_of_rfc_7677_holds() {
    let (server_first, challenged) = example().challenge(CLIENT_FIRST.as_bytes()).unwrap();
    assert_eq!(server_first, SERVER_FIRST);
    let proven = challenged.prove(CLIENT_FINAL.as_bytes()).unwrap();
    assert_eq!(proven.server_final, SERVER_FINAL);
    assert_eq!(sha256(proven.client_key.reveal()), example().verifier.stored_key);
}

#[test]
fn y_is_bound_to_what_was_said_at_first() {
    let (_, challenged) = quick().challenge(b"y,,n=,r=client").unwrap();
    let good = client_final("pencil", "y,,", &challenged);
    assert!(good.starts_with("c=eSws,"));
    assert!(challenged.prove(good.as_bytes()).is_ok());
    let (_, challenged) = quick().challenge(b"y,,n=,r=client").unwrap();
    let changed = client_final("pencil", "n,,", &challenged);
    assert_eq!(challenged.prove(changed.as_bytes()).unwrap_err(), ScramError::BindingChanged);
}

const CERTIFICATE: &[u8] = b"the hash of a certificate";

#[test]
fn a_proof_is_bound_to_the_certificate() {
    let challenged =
        || over(Channel::Bound(CERTIFICATE.to_vec())).challenge(b"p=tls-server-end-point,,n=,r=c").unwrap().1;
    let header = |hash: &[u8]| [b"p=tls-server-end-point,,", hash].concat();
    let good = client_final("pencil", header(CERTIFICATE), &challenged());
    assert!(challenged().prove(good.as_bytes()).is_ok());
    // Somebody on the way has another certificate, or none.
    for other in [header(b"another"), header(b""), b"n,,".to_vec(), b"y,,".to_vec()] {
        let wrong = client_final("pencil", other, &challenged());
        assert_eq!(challenged().prove(wrong.as_bytes()).unwrap_err(), ScramError::BindingChanged);
    }
    assert_eq!(ScramError::BindingChanged.sqlstate(), SqlState::InvalidAuthorization);
}

#[test]
fn whoever_was_not_shown_the_offer_is_told_of_it() {
    let refused =
        |channel: Channel, flag: &str| over(channel).challenge(format!("{flag},,n=,r=client").as_bytes()).map(drop);
    let bound = || Channel::Bound(CERTIFICATE.to_vec());
    assert_eq!(refused(Channel::Declined, "y"), Err(ScramError::Downgrade));
    assert_eq!(refused(Channel::Declined, "n"), Ok(()));
    assert_eq!(refused(Channel::Declined, "p=tls-server-end-point"), Err(ScramError::ChannelBinding));
    assert!(matches!(refused(bound(), "n"), Err(ScramError::Malformed(_))));
    assert!(matches!(refused(bound(), "y"), Err(ScramError::Malformed(_))));
    assert_eq!(refused(bound(), "p=tls-unique"), Err(ScramError::BindingType));
    assert!(ScramError::Downgrade.detail().is_some());
}

#[test]
fn a_wrong_password_is_a_wrong_proof() {
    let (_, challenged) = quick().challenge(b"n,,n=,r=client").unwrap();
    let wrong = client_final("pencils", "n,,", &challenged);
    assert_eq!(challenged.prove(wrong.as_bytes()).unwrap_err(), ScramError::Proof);
    assert_eq!(ScramError::Proof.sqlstate(), SqlState::InvalidPassword);
}

#[test]
fn optional_extensions_change_nothing() {
    let (server_first, challenged) = quick().challenge(b"n,,n=a=2Cb,r=client,x=1").unwrap();
    assert_eq!(server_first, "r=clientserver,s=c2FsdA==,i=1");
    let good = client_final("pencil", "n,,", &challenged);
    assert!(challenged.prove(good.as_bytes()).is_ok());
}

#[test]
fn broken_first_messages_are_refused() {
    let refused = |message: &[u8]| quick().challenge(message).unwrap_err();
    assert_eq!(refused(b"p=tls-server-end-point,,n=,r=c"), ScramError::ChannelBinding);
    assert_eq!(refused(b"n,a=other,n=,r=c"), ScramError::AuthorizationIdentity);
    assert_eq!(refused(b"n,,m=x,n=,r=c"), ScramError::Extension);
    assert_eq!(refused(&[b'n'; MESSAGE_BYTES_MAX + 1]), ScramError::TooLong);
    let malformed: [&[u8]; 12] = [
        b"",
        b"n",
        b"n,",
        b"n,,",
        b"x,,n=,r=c",
        b"n,x,n=,r=c",
        b"n,,n=",
        b"n,,n=,r=",
        b"n,,r=c,n=",
        b"n,,n=,r=a b",
        b"n,,n=,r=c,",
        b"n,,n=,r=c\0",
    ];
    for message in malformed {
        assert!(matches!(refused(message), ScramError::Malformed(_)), "{message:?}");
    }
    assert!(matches!(refused(b"n,,n=\xff,r=c"), ScramError::Malformed(_)));
}

#[test]
fn broken_last_messages_are_refused() {
    let refused = |change: &dyn Fn(String) -> String| {
        let (_, challenged) = quick().challenge(b"n,,n=,r=client").unwrap();
        let message = change(client_final("pencil", "n,,", &challenged));
        challenged.prove(message.as_bytes()).unwrap_err()
    };
    assert_eq!(refused(&|good| good.replace("clientserver", "clientservant")), ScramError::Nonce);
    assert_eq!(refused(&|good| good.replace("clientserver", "client")), ScramError::Nonce);
    assert_eq!(refused(&|good| good.replace("biws", "biwsbiws")), ScramError::BindingChanged);
    assert_eq!(refused(&|good| good.replace(",p=", ",x=1,p=")), ScramError::Proof);
    for suffix in ["=", "\n", ",x=1", "AAAA", " "] {
        assert!(matches!(refused(&|good| good + suffix), ScramError::Malformed(_)), "{suffix:?}");
    }
    assert!(matches!(refused(&|good| good.replace("p=", "q=")), ScramError::Malformed(_)));
    assert!(matches!(refused(&|good| good.replace("c=", "d=")), ScramError::Malformed(_)));
    assert!(matches!(refused(&|_| String::new()), ScramError::Malformed(_)));
    assert!(matches!(refused(&|good| good.split(",p=").next().unwrap().to_owned() + ",p="), ScramError::Malformed(_)));
}

#[test]
fn nonces_differ() {
    let mut rng = StdRng::seed_from_u64(7);
    let first = Exchange::new(quick().verifier, Channel::Unbound, &mut rng);
    let second = Exchange::new(quick().verifier, Channel::Unbound, &mut rng);
    assert_eq!(first.nonce.len(), 24);
    assert_ne!(first.nonce, second.nonce);
}

proptest! {
    #[test]
    fn no_bytes_panic(first: Vec<u8>, second: Vec<u8>) {
        let _ = quick().challenge(&first);
        let (_, challenged) = quick().challenge(b"n,,n=,r=client").unwrap();
        prop_assert!(challenged.prove(&second).is_err());
    }

    #[test]
    fn no_text_panics(first in "[nypa,=mr ]{0,24}", second in "[crp,=a ]{0,24}") {
        let _ = quick().challenge(first.as_bytes());
        let (_, challenged) = quick().challenge(b"n,,n=,r=client").unwrap();
        prop_assert!(challenged.prove(second.as_bytes()).is_err());
    }

    #[test]
    fn no_changed_byte_is_accepted(at in 0..200_usize, flip in 1..=255_u8) {
        let (_, challenged) = quick().challenge(b"n,,n=,r=client").unwrap();
        let mut message = client_final("pencil", "n,,", &challenged).into_bytes();
        let at = at % message.len();
        message[at] ^= flip;
        prop_assert!(challenged.prove(&message).is_err());
    }
}
