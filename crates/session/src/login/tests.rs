#![expect(clippy::unwrap_used, reason = "tests")]

use rand::SeedableRng;
use rand::rngs::StdRng;
use switchyard_catalog::{
    AuthenticationAccess, AuthenticationChange, Change, Name, Network, Secret, TlsDemand, Verifiers,
};

use super::*;

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn host(network: &str) -> AuthenticationAccess {
    let network = Network { typed: network.to_owned(), net: network.parse().unwrap() };
    AuthenticationAccess::Host { network, tls: TlsDemand::Any }
}

fn record(record: &str, method: AuthenticationMethod, network: &str, grantees: &[&str]) -> [Change; 2] {
    [
        Change::CreateAuthentication { name: name(record), method, access: host(network), fallthrough: false },
        Change::GrantAuthentication {
            name: name(record),
            grantees: grantees.iter().map(|grantee| name(grantee)).collect(),
        },
    ]
}

/// `dbadmin`, `mira` and `nora`; without the records of a new catalog when `bare`.
fn catalog(bare: bool, changes: impl IntoIterator<Item = Change>) -> Catalog {
    let (catalog, _) = Catalog::initial(name("switchyard"), name("dbadmin"), None);
    let mut all: Vec<_> = ["mira", "nora"]
        .map(|user| Change::CreateUser { name: name(user), superuser: false, changes: Vec::new() })
        .into();
    if bare {
        all.extend(catalog.authentications().iter().map(|record| Change::AlterAuthentication {
            name: record.name.clone(),
            change: AuthenticationChange::Enable(false),
        }));
    }
    all.extend(changes);
    catalog.apply(&all).unwrap().catalog
}

fn decide(catalog: &Catalog, user: &str, address: &str) -> LoginDecision {
    let peer = Peer::tcp(format!("{address}:4711").parse().unwrap());
    decide_login(catalog, &LoginRequest { user, peer, tls: false })
}

fn methods(decision: &LoginDecision) -> Vec<AuthenticationMethod> {
    decision.attempts.iter().map(|attempt| attempt.method).collect()
}

#[test]
fn a_new_catalog_asks_everybody_for_a_password() {
    let catalog = catalog(false, []);
    for peer in [Peer::unix(), Peer::tcp("127.0.0.1:1".parse().unwrap()), Peer::tcp("[fd00::1]:1".parse().unwrap())] {
        let decision = decide_login(&catalog, &LoginRequest { user: "MIRA", peer, tls: false });
        assert_eq!(methods(&decision), [AuthenticationMethod::Hash], "{peer}");
        assert_eq!(decision.user.unwrap().name.as_str(), "mira");
        for user in ["nobody", "", "a\u{7}", &"x".repeat(1000)] {
            let decision = decide_login(&catalog, &LoginRequest { user, peer, tls: false });
            assert_eq!(methods(&decision), [AuthenticationMethod::Hash], "{peer}");
            assert_eq!(decision.user.unwrap_err(), PasswordFailure::UserUnknown);
        }
    }
}

#[test]
fn whoever_is_granted_nothing_looks_like_the_others() {
    let catalog = catalog(true, record("r", AuthenticationMethod::Hash, "10.0.0.0/8", &["mira"]));
    assert!(decide(&catalog, "mira", "10.1.2.3").user.is_ok());
    for (user, why) in [("nora", PasswordFailure::RecordMissing), ("nobody", PasswordFailure::UserUnknown)] {
        let decision = decide(&catalog, user, "10.1.2.3");
        assert_eq!(methods(&decision), [AuthenticationMethod::Hash]);
        assert_eq!(decision.user.unwrap_err(), why);
    }
}

#[test]
fn an_address_that_no_record_is_for_is_refused_for_all() {
    let catalog = catalog(true, record("r", AuthenticationMethod::Hash, "10.0.0.0/8", &["mira"]));
    for user in ["mira", "nora", "nobody"] {
        assert_eq!(methods(&decide(&catalog, user, "192.168.0.1")), []);
    }
}

#[test]
fn trust_is_for_those_it_is_granted_to() {
    let catalog = catalog(true, record("r", AuthenticationMethod::Trust, "127.0.0.0/8", &["dbadmin"]));
    assert_eq!(methods(&decide(&catalog, "dbadmin", "127.0.0.1")), [AuthenticationMethod::Trust]);
    assert_eq!(methods(&decide(&catalog, "dbadmin", "[::ffff:127.0.0.1]")), [AuthenticationMethod::Trust]);
    for user in ["mira", "nobody"] {
        assert_eq!(methods(&decide(&catalog, user, "127.0.0.1")), []);
    }
}

#[test]
fn mocks_outlive_the_process_when_the_superuser_has_a_password() {
    let mut rng = StdRng::seed_from_u64(1);
    let verifiers = Verifiers { scram: Secret::new("a"), sha512: Secret::new("b"), md5: None };
    let (kept, _) = Catalog::initial(name("switchyard"), name("dbadmin"), Some(verifiers));
    let mut salt = |catalog: &Catalog| {
        switchyard_wire::ScramVerifier::mock(&mock_secret(catalog, &mut rng), "nobody", 4096).text()
    };
    assert_eq!(salt(&kept), salt(&kept));
    let fresh = catalog(false, []);
    assert_ne!(salt(&fresh), salt(&fresh));
}
