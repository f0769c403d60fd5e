#![expect(clippy::unwrap_used, reason = "a test may")]

use std::net::IpAddr;

use crate::apply::tests::sample::*;
use crate::*;

const LOCAL: AuthenticationClient = AuthenticationClient { local: true, address: None, tls: false };

fn from(address: &str, tls: bool) -> AuthenticationClient {
    AuthenticationClient { local: false, address: Some(address.parse::<IpAddr>().unwrap()), tls }
}

fn access(net: &str, tls: TlsDemand) -> AuthenticationAccess {
    AuthenticationAccess::Host { network: network(net), tls }
}

fn priority(record: &str, priority: u32) -> Change {
    Change::AlterAuthentication { name: name(record), change: AuthenticationChange::Priority(priority) }
}

fn decide(catalog: &Catalog, client: AuthenticationClient, user: &str) -> AuthenticationDecision {
    catalog.decide_authentication(client, user)
}

fn chosen(catalog: &Catalog, client: AuthenticationClient, user: &str) -> String {
    decide(catalog, client, user).record.map_or_else(String::new, |record| record.name.as_str().to_owned())
}

#[test]
fn everybody_is_asked_for_a_password_at_first() {
    let catalog = initial();
    for (client, record) in [
        (LOCAL, "default_local"),
        (from("127.0.0.1", false), "default_host_v4"),
        (from("203.0.113.9", true), "default_host_v4"),
        (from("2001:db8::1", false), "default_host_v6"),
        (from("::ffff:203.0.113.9", false), "default_host_v4"),
    ] {
        assert_eq!(chosen(&catalog, client, "dbadmin"), record);
    }
}

/// The sample's record is for 10.8.0.0/16 with TLS, and granted to mira and to a role that gunther has.
#[test]
fn a_record_counts_for_its_network_its_tls_and_whom_it_is_granted_to() {
    let catalog = sample().apply(&[create_user("eve")]).unwrap().catalog;
    for (client, user, record) in [
        (from("10.8.3.7", true), "mira", "from_office"),
        (from("::ffff:10.8.3.7", true), "mira", "from_office"),
        (from("10.8.3.7", true), "gunther", "from_office"),
        (from("10.8.3.7", true), "eve", "default_host_v4"),
        (from("10.8.3.7", false), "mira", "default_host_v4"),
        (from("10.9.3.7", true), "mira", "default_host_v4"),
        (LOCAL, "mira", "default_local"),
    ] {
        assert_eq!(chosen(&catalog, client, user), record, "{client:?} {user}");
    }
}

#[test]
fn the_reasons_name_what_is_in_the_way() {
    use AuthenticationReason::*;
    let disable =
        Change::AlterAuthentication { name: name("default_local"), change: AuthenticationChange::Enable(false) };
    let catalog = sample()
        .apply(&[
            create_user("eve"),
            disable,
            create_authentication("plain", access("10.0.0.0/8", TlsDemand::Forbidden)),
        ])
        .unwrap()
        .catalog;
    let reasons = |client, user| {
        let decision = decide(&catalog, client, user);
        let considered = decision.considered.into_iter();
        considered.map(|(record, reason)| (record.name.as_str().to_owned(), reason)).collect::<Vec<_>>()
    };
    let listed = |pairs: &[(&str, AuthenticationReason)]| {
        pairs.iter().map(|(text, reason)| ((*text).to_owned(), *reason)).collect::<Vec<_>>()
    };
    assert_eq!(
        reasons(from("10.8.3.7", true), "mira"),
        listed(&[
            ("from_office", Chosen),
            ("default_host_v4", Outranked),
            ("default_local", Disabled),
            ("default_host_v6", OtherAccess),
            ("plain", OtherTls),
        ])
    );
    assert_eq!(
        reasons(from("10.8.3.7", false), "eve"),
        listed(&[
            ("default_host_v4", Chosen),
            ("default_local", Disabled),
            ("default_host_v6", OtherAccess),
            ("from_office", OtherTls),
            ("plain", NotGranted),
        ])
    );
    assert_eq!(decide(&catalog, LOCAL, "mira").record, None);
}

#[test]
fn priority_goes_before_prefix_and_prefix_before_age() {
    let records = [
        create_authentication("wide", access("10.0.0.0/8", TlsDemand::Any)),
        create_authentication("narrow", access("10.8.3.0/24", TlsDemand::Any)),
        create_authentication("narrow_too", access("10.8.3.0/24", TlsDemand::Any)),
        grant_authentication("wide", &["public"]),
        grant_authentication("narrow", &["public"]),
        grant_authentication("narrow_too", &["public"]),
    ];
    let catalog = sample().apply(&records).unwrap().catalog;
    let client = from("10.8.3.7", false);
    assert_eq!(chosen(&catalog, client, "mira"), "narrow");
    let catalog = catalog.apply(&[priority("wide", 1)]).unwrap().catalog;
    assert_eq!(chosen(&catalog, client, "mira"), "wide");
}

#[test]
fn fallthrough_leads_to_the_next() {
    let fallthrough = |record: &str| Change::AlterAuthentication {
        name: name(record),
        change: AuthenticationChange::Fallthrough(true),
    };
    let catalog = sample();
    let attempts = |catalog: &Catalog| {
        let decision = decide(catalog, from("10.8.3.7", true), "mira");
        decision.attempts().map(|record| record.name.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(attempts(&catalog), ["from_office"]);
    let catalog = catalog.apply(&[fallthrough("from_office")]).unwrap().catalog;
    assert_eq!(attempts(&catalog), ["from_office", "default_host_v4"]);
}

#[test]
fn a_password_is_asked_for_in_vain_where_others_are_asked_for_one() {
    let bare = ["default_local", "default_host_v4", "default_host_v6"]
        .map(|record| Change::AlterAuthentication { name: name(record), change: AuthenticationChange::Enable(false) });
    let catalog = sample().apply(&bare).unwrap().catalog;
    // Only of method hash: a certificate is shown or not, whoever asks.
    let hash = Change::AlterAuthentication {
        name: name("from_office"),
        change: AuthenticationChange::Method(AuthenticationMethod::Hash),
    };
    let hash = catalog.apply(&[hash]).unwrap().catalog;
    for user in ["dbadmin", "nobody", "", "no\u{7}name"] {
        let decision = decide(&hash, from("10.8.3.7", true), user);
        assert_eq!((decision.record, decision.in_vain), (None, true), "{user}");
        assert_eq!(decision.user.is_some(), user == "dbadmin");
        assert!(!decide(&hash, from("10.9.3.7", true), user).in_vain, "{user}");
    }
    assert!(!decide(&hash, from("10.8.3.7", true), "mira").in_vain);
}
