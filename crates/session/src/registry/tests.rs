#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::collections::HashSet;

use poll::is_ready;

use super::*;

/// Whether a future is ready at its first poll.
mod poll {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    pub(super) fn is_ready(future: impl Future) -> bool {
        pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }
}

fn new(version: Version) -> NewSession {
    NewSession {
        user: UserId(7),
        user_name: Name::parse("mira").unwrap(),
        superuser: false,
        user_sessions_max: None,
        client_sessions_max: None,
        client: None,
        local: None,
        database: None,
        version,
        vertica: None,
        application: "psql".to_owned(),
        tls: None,
        method: AuthenticationMethod::Trust,
        record: None,
        given: None,
    }
}

fn register(registry: &Arc<Registry>) -> Session {
    registry.register(new(Version::V3_0), &Limits::default(), &mut rand::rng()).unwrap()
}

#[test]
fn sessions_are_there_until_dropped() {
    let registry = Registry::new("host");
    let sessions: Vec<_> = (0..20).map(|_| register(&registry)).collect();
    assert_eq!(registry.len(), 20);
    let ids: HashSet<_> = sessions.iter().map(|session| session.process_id).collect();
    assert_eq!(ids.len(), 20);
    let first = &sessions[0];
    assert_eq!(first.id, format!("host-{}:0x1", std::process::id()));
    assert_eq!(registry.session_named(&first.id).unwrap().process_id, first.process_id);
    let listed: Vec<_> = registry.sessions().iter().map(|session| session.id.clone()).collect();
    assert_eq!(listed, sessions.iter().map(|session| session.id.clone()).collect::<Vec<_>>());
    drop(sessions);
    assert!(registry.is_empty() && registry.sessions().is_empty());
}

#[test]
fn keys_are_as_long_as_the_protocol_has_them() {
    let registry = Registry::new("host");
    for (version, bytes) in [(Version::V3_0, 4), (Version::V3_2, 32)] {
        let session = registry.register(new(version), &Limits::default(), &mut rand::rng()).unwrap();
        assert_eq!(session.secret().len(), bytes);
    }
    let version = Version { major: 3, minor: 16 };
    let wishes = Wishes { requested: version, effective: version, autocommit: false, binary: false };
    let vertica = NewSession { vertica: Some(wishes), ..new(version) };
    let session = registry.register(vertica, &Limits::default(), &mut rand::rng()).unwrap();
    assert_eq!(session.secret().len(), 4);
}

#[test]
fn only_the_right_key_cancels() {
    let registry = Registry::new("host");
    let (session, other) = (register(&registry), register(&registry));
    let secret = session.secret().to_vec();
    let statement = session.interrupted();
    assert!(!registry.cancel(session.process_id, &[&secret[..], &[0]].concat()));
    assert!(!registry.cancel(session.process_id, &secret[1..]));
    assert!(!registry.cancel(session.process_id, b""));
    assert!(!registry.cancel(session.process_id, &secret.iter().map(|byte| byte ^ 1).collect::<Vec<_>>()));
    assert!(!registry.cancel(0, &secret));
    let ready = is_ready(session.interrupted());
    assert!(!ready, "nothing was cancelled");
    let others = other.interrupted();
    assert!(registry.cancel(session.process_id, &secret));
    assert!(is_ready(statement));
    assert!(!is_ready(others));
    assert!(!is_ready(session.interrupted()), "the next statement is not cancelled");
}

#[test]
fn an_end_is_remembered() {
    let registry = Registry::new("host");
    let session = register(&registry);
    assert!(!is_ready(session.terminated()));
    session.terminate();
    assert!(is_ready(session.terminated()));
}

#[test]
fn limits_hold_and_say_so() {
    let registry = Registry::new("host");
    let limits = Limits { connections_max: 3, connections_reserved: 1, logins_max: 1, ..Limits::default() };
    let register =
        |superuser| registry.register(NewSession { superuser, ..new(Version::V3_0) }, &limits, &mut rand::rng());
    let kept = [register(false).unwrap(), register(false).unwrap()];
    let error = register(false).unwrap_err();
    assert_eq!(error.to_string(), "remaining connection slots are reserved for superusers");
    let superuser = register(true).unwrap();
    let report = register(true).unwrap_err().report().unwrap();
    assert_eq!(report.message, "sorry, too many clients already");
    assert_eq!(report.sqlstate.code(), "53300");
    assert_eq!(report.detail.as_deref(), Some("The limit \"connections_max\" is 3."));
    drop((kept, superuser));
    assert!(register(false).is_ok());
}

#[test]
fn the_oldest_login_makes_room() {
    let registry = Registry::new("host");
    let limits = Limits { logins_max: 2, ..Limits::default() };
    let [first, second] = [registry.begin_login(&limits), registry.begin_login(&limits)];
    assert!(!is_ready(first.cut()));
    let third = registry.begin_login(&limits);
    assert_eq!(registry.logins(), 2);
    assert!(is_ready(first.cut()) && !is_ready(second.cut()) && !is_ready(third.cut()));
    // Its place was given away when it was cut.
    drop(first);
    assert_eq!(registry.logins(), 2);
    drop((second, third));
    assert_eq!(registry.logins(), 0);
}

#[test]
fn activity_follows_statements_and_transactions() {
    let registry = Registry::new("host");
    let session = register(&registry);
    assert_eq!(session.activity().state, SessionState::Idle);
    assert_eq!(session.activity().application, "psql");
    session.begin_statement("BEGIN");
    assert_eq!(session.activity().state.as_str(), "active");
    session.end_statement(SessionState::IdleInTransaction);
    let opened = session.activity().transaction_since_us;
    assert!(opened.is_some());
    session.begin_statement("SELECT 1");
    session.end_statement(SessionState::IdleInTransaction);
    assert_eq!(session.activity().transaction_since_us, opened);
    assert_eq!(session.activity().statement.as_deref(), Some("SELECT 1"));
    session.begin_statement("COMMIT");
    session.end_statement(SessionState::Idle);
    assert_eq!(session.activity().transaction_since_us, None);
}

#[test]
fn the_catalog_limits_sessions_too() {
    let registry = Registry::new("host");
    let register = |change: fn(&mut NewSession)| {
        let mut session = new(Version::V3_0);
        change(&mut session);
        registry.register(session, &Limits::default(), &mut rand::rng())
    };
    let _first = register(|session| session.user_sessions_max = Some((1, LimitScope::Node))).unwrap();
    let refused = register(|session| session.user_sessions_max = Some((1, LimitScope::Node))).unwrap_err();
    assert_eq!(refused.to_string(), "too many connections for user \"mira\"");
    let _other = register(|session| session.user = UserId(8)).unwrap();
    let refused = register(|session| session.client_sessions_max = Some(2)).unwrap_err();
    assert_eq!(refused.to_string(), "New session rejected due to limit, already 2 sessions active");
    let superuser = |session: &mut NewSession| {
        session.superuser = true;
        session.client_sessions_max = Some(2);
    };
    let superusers: Vec<_> = (0..SUPERUSER_SESSIONS).map(|_| register(superuser).unwrap()).collect();
    assert!(matches!(register(superuser), Err(SessionError::ClientSessionsMax { sessions_max: 2 })));
    drop(superusers);
    assert_eq!(registry.len(), 2);
}

#[test]
fn a_limit_on_the_database_counts_all_members_of_the_process() {
    let first = Registry::new("host");
    let second = first.beside("other");
    let register = |registry: &Arc<Registry>, scope| {
        let session = NewSession { user_sessions_max: Some((2, scope)), ..new(Version::V3_0) };
        registry.register(session, &Limits::default(), &mut rand::rng())
    };
    let here = register(&first, LimitScope::Database).unwrap();
    let _there = register(&second, LimitScope::Database).unwrap();
    for registry in [&first, &second] {
        let refused = register(registry, LimitScope::Database).unwrap_err();
        assert!(matches!(refused, SessionError::UserSessionsMax { sessions_max: 2, .. }));
    }
    let _on_the_node = register(&second, LimitScope::Node).unwrap();
    assert!(register(&second, LimitScope::Node).is_err());
    drop(here);
    assert!(register(&first, LimitScope::Database).is_err());
    assert!(register(&first, LimitScope::Node).is_ok());
}
