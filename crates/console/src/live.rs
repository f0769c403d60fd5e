//! What system tables show and no catalog holds.

use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use switchyard_catalog::NodeId;
use switchyard_engine::{
    ClientCertificate, HostInterface, Lazy, Live, LiveSession, LiveTls, LoginFailure, ProcessSetting,
    ServerCertificate, WorkloadDecision,
};
use switchyard_session::{Registry, SessionEntry, SessionState, Tls, TlsFacts, TlsStatus};

use crate::draining::Draining;
use crate::members::{Here, Members};
use crate::query_log::QueryLog;
use crate::router::Router;

/// How many ended sessions are remembered.
const ENDED_SESSIONS_MAX: usize = 1_000;

/// How many failed logins are remembered.
const LOGIN_FAILURES_MAX: usize = 1_000;

/// How many decisions on workloads are remembered.
const WORKLOAD_DECISIONS_MAX: usize = 10_000;

/// Microseconds since 1970-01-01 UTC.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// The member's own part of [`Live`].
#[derive(Debug)]
pub(crate) struct LiveState {
    start_us: i64,
    ended: Mutex<VecDeque<(LiveSession, i64)>>,
    failures: Mutex<VecDeque<LoginFailure>>,
    workloads: Mutex<VecDeque<WorkloadDecision>>,
    process_settings: Arc<[ProcessSetting]>,
    pub(crate) query_log: Arc<QueryLog>,
    /// How many bytes the rows take that the cursors of all sessions keep.
    pub(crate) kept_bytes: Arc<AtomicUsize>,
    pub(crate) draining: Draining,
}

impl LiveState {
    /// The member is up from now on.
    pub(crate) fn start(process_settings: Vec<ProcessSetting>) -> Self {
        let start_us = now_us();
        Self {
            start_us,
            ended: Mutex::default(),
            failures: Mutex::default(),
            workloads: Mutex::default(),
            process_settings: process_settings.into(),
            query_log: Arc::new(QueryLog::new(start_us)),
            kept_bytes: Arc::default(),
            draining: Draining::default(),
        }
    }

    /// A workload has begun, or ceased, to apply to a session.
    pub(crate) fn workload_decided(&self, decision: WorkloadDecision) {
        let mut decisions = self.workloads.lock().unwrap_or_else(PoisonError::into_inner);
        while decisions.len() >= WORKLOAD_DECISIONS_MAX {
            decisions.pop_front();
        }
        decisions.push_back(decision);
    }

    /// A session is over.
    pub(crate) fn ended(&self, session: LiveSession) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        while ended.len() >= ENDED_SESSIONS_MAX {
            ended.pop_front();
        }
        ended.push_back((session, now_us()));
    }

    /// The sessions that ended lately, with when.
    pub(crate) fn ended_sessions(&self) -> Vec<(LiveSession, i64)> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// A login has failed.
    pub(crate) fn login_failed(&self, node: Option<NodeId>, client: String, reason: String) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        while failures.len() >= LOGIN_FAILURES_MAX {
            failures.pop_front();
        }
        failures.push_back(LoginFailure { node, time_us: now_us(), client, reason });
    }

    /// All of it, with what the other members of the process remember: each part is read when it is asked for.
    pub(crate) fn now(
        &self,
        node: Option<NodeId>,
        members: &Arc<Members>,
        router: &Router,
        registry: &Arc<Registry>,
        tls: Option<&Tls>,
    ) -> Live {
        Live {
            node,
            start_us: self.start_us,
            sessions: {
                let members = Arc::clone(members);
                Lazy::new(move || members.sessions().iter().map(|(node, entry)| shown(Some(*node), entry)).collect())
            },
            ended_sessions: lazy(members, |live| &live.ended, |(_, end_us)| *end_us),
            drains: Vec::new(),
            login_failures: lazy(members, |live| &live.failures, |failure| failure.time_us),
            node_events: members.events(),
            turns: Arc::clone(&router.turns),
            rule_counters: Arc::clone(&members.counters),
            routed: {
                let members = Arc::clone(members);
                Lazy::new(move || members.routed.all())
            },
            interfaces: Lazy::new(interfaces),
            workload_decisions: lazy(members, |live| &live.workloads, |decision| decision.time_us),
            work: {
                let (counters, registry) = (Arc::clone(&self.query_log.counters), Arc::clone(registry));
                Lazy::new(move || counters.work(now_us(), registry.logins()))
            },
            process_settings: Arc::clone(&self.process_settings),
            certificate: tls.map(shown_certificate),
            cursors: Arc::default(),
            prepared: Arc::default(),
            locks: Arc::default(),
            effects: Arc::default(),
            build: concat!("switchyard ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// What the members of the process remember, the oldest first, read when it is asked for.
fn lazy<T: Clone + Send + 'static>(
    members: &Arc<Members>,
    part: fn(&LiveState) -> &Mutex<VecDeque<T>>,
    time_us: fn(&T) -> i64,
) -> Lazy<Vec<T>> {
    let members = Arc::clone(members);
    Lazy::new(move || {
        let kept = |member: Here| -> Vec<T> {
            part(&member.live).lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
        };
        let mut all: Vec<T> = members.here().into_iter().flat_map(kept).collect();
        all.sort_by_key(time_us);
        all
    })
}

/// A session as `SESSIONS` shows it.
pub(crate) fn shown(node: Option<NodeId>, entry: &SessionEntry) -> LiveSession {
    let activity = entry.activity();
    let active = activity.state == SessionState::Active;
    let statement = activity.statement.as_deref().map(str::to_owned);
    LiveSession {
        node,
        session_id: entry.id.clone(),
        process_id: i64::from(entry.process_id),
        user: entry.user_name.to_string(),
        client: entry.client.map_or_else(|| "[local]".to_owned(), |client| client.to_string()),
        local: entry.local,
        database: entry.database.clone(),
        state_since_us: activity.state_since_us,
        login_us: entry.login_time_us,
        label: activity.label,
        application: activity.application,
        transaction_start_us: activity.transaction_since_us,
        statement_start_us: activity.statement_since_us,
        statement_number: i64::try_from(activity.statements).unwrap_or(i64::MAX),
        current_statement: statement.clone().filter(|_| active),
        last_statement: if active { activity.statement_before.as_deref().map(str::to_owned) } else { statement },
        last_duration_us: activity.last_duration_us,
        authentication_method: entry.method.as_str().to_owned(),
        authentication_name: entry.record.as_ref().map(|record| record.name.to_string()).unwrap_or_default(),
        authentication_id: entry.record.as_ref().map(|record| record.id.as_i64()),
        tls: entry.tls.as_ref().map(shown_tls),
        protocol: entry.version.code().into(),
        protocol_requested: entry.vertica.map_or(entry.version, |wishes| wishes.requested).code().into(),
        workload: activity.workload.unwrap_or_default(),
        idle_session_timeout: activity.idle_session_timeout,
        grace_period: activity.grace_period,
        startup: activity.startup,
    }
}

fn shown_tls(tls: &TlsFacts) -> LiveTls {
    let client = tls.client.as_ref().map(|certificate| ClientCertificate {
        subject: certificate.subject.clone(),
        issuer: certificate.issuer.clone(),
        serial: certificate.serial.clone(),
    });
    LiveTls { version: tls.version.clone(), cipher: tls.cipher.clone(), client }
}

/// The member's certificate as `tls_certificates` shows it.
fn shown_certificate(tls: &Tls) -> ServerCertificate {
    let TlsStatus { options, certificate, loaded_us, failure } = tls.status();
    ServerCertificate {
        path: options.certificate.display().to_string(),
        subject: certificate.subject,
        issuer: certificate.issuer,
        serial: certificate.serial,
        names: certificate.identities,
        not_before_us: certificate.not_before.saturating_mul(1_000_000),
        not_after_us: certificate.not_after.saturating_mul(1_000_000),
        client_ca: options.client_ca.map(|path| path.display().to_string()),
        loaded_us,
        failure,
    }
}

/// The host's network interfaces; none where the system does not tell.
fn interfaces() -> Vec<HostInterface> {
    let Ok(found) = if_addrs::get_if_addrs() else { return Vec::new() };
    found
        .into_iter()
        .map(|interface| HostInterface {
            address: interface.ip(),
            prefix_length: match interface.addr {
                if_addrs::IfAddr::V4(address) => address.prefixlen,
                if_addrs::IfAddr::V6(address) => address.prefixlen,
            },
            name: interface.name,
        })
        .collect()
}
