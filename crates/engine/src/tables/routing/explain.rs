//! `explain_route(address, user, workload, database, roles)`: where a connection would go, and why.

use std::collections::BTreeSet;
use std::net::IpAddr;

use switchyard_catalog::{
    Catalog, Delivery, Host, Name, NameError, NodeState, NodeStates, ObjectKind, Outcome, Policy, RoleId,
    RoutingClient, RoutingView, RuleVerdict, Skip, Stage, StageTrace, SubclusterId, Trace, Turn, WorkloadRule,
};
use thiserror::Error;

use super::super::{Cell, Column, Kind, Rows, RowsError, column};
use super::stage_name;
use crate::describe::chosen_among;
use crate::error::PlanError;
use crate::session_state::access::may_use;
use crate::session_state::{Login, SessionChange, SessionState, WorkloadWish};
use crate::snapshot::Snapshot;

/// How many routing rules are listed; of more there is one row with their number.
const RULES_LISTED_MAX: usize = 10_000;

/// Its columns.
pub(crate) const EXPLAIN_ROUTE: &[Column] = &[
    column("step", Kind::Int, "From 1."),
    column(
        "stage",
        Kind::Varchar,
        "routing rule, load balance group, classic policy, interior rule, connection, workload or execution.",
    ),
    column("object_name", Kind::Varchar, "What is looked at: a rule, group, subcluster, workload or kind of client."),
    column("node_name", Kind::Varchar, "The node that is looked at."),
    column("address", Kind::Varchar, "Its address there."),
    column("port", Kind::Int, "Its port there."),
    column("outcome", Kind::Varchar, "What became of it."),
    column("reason", Kind::Varchar, "Why."),
];

/// Who would connect.
#[derive(Debug)]
pub(crate) struct RouteQuestion {
    /// From where.
    pub(crate) address: IpAddr,
    /// As whom.
    pub(crate) user: Option<String>,
    /// Naming this workload.
    pub(crate) workload: Option<String>,
    /// And this database.
    pub(crate) database: Option<String>,
    /// With these roles put on instead of those that are on at login.
    pub(crate) roles: Option<Vec<String>>,
}

/// Why there is no explanation.
#[derive(Debug, Error)]
pub(crate) enum ExplainRouteError {
    /// Roles and workloads are somebody's.
    #[error("explain_route needs a user for a workload or roles")]
    NoUser,
    /// Others than the superuser ask for themselves.
    #[error("Must be superuser to explain the route of another user")]
    OtherUser,
    /// The role is not granted to the user.
    #[error("role \"{role}\" has not been granted to user \"{user}\"")]
    RoleNotGranted {
        /// The role.
        role: Name,
        /// The user.
        user: Name,
    },
    /// The name is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Something named is not there, or no session could be opened.
    #[error(transparent)]
    Session(#[from] PlanError),
    /// A mistake of ours.
    #[error(transparent)]
    Rows(#[from] RowsError),
}

/// Rows while they are made.
struct Steps<'a, 'r> {
    snapshot: &'a Snapshot,
    rows: &'r mut Rows,
    step: i64,
}

/// What a row is about.
#[derive(Default)]
struct Subject<'a> {
    object: Option<&'a str>,
    node: Option<&'a str>,
    place: Option<(&'a Host, u16)>,
}

/// The rows. Nothing is changed by asking: no turn of a round robin is taken.
pub(crate) fn explain_route(
    snapshot: &Snapshot,
    question: &RouteQuestion,
    rows: &mut Rows,
) -> Result<(), ExplainRouteError> {
    let session = session(snapshot, question)?;
    let states = snapshot.node_states();
    let mut steps = Steps { snapshot, rows, step: 0 };
    let view = RoutingView { here: snapshot.live.node, states: &states, turns: &snapshot.live.turns };
    let client = RoutingClient { address: question.address, asks: true, can_be_redirected: true };
    let trace = snapshot.catalog.decide_and_tell(&client, &view, Turn::Look, &mut rand::rng());
    steps.rules(question.address)?;
    if trace.decision.stage != Stage::Classic && !matches!(trace.decision.stage, Stage::Rule { .. }) {
        let subject = Subject { object: Some(Policy::None.as_str()), ..Subject::default() };
        steps.push("classic policy", &subject, "not applied", "the policy is NONE")?;
    }
    for stage in &trace.stages {
        steps.stage(stage)?;
    }
    steps.connection(&trace)?;
    let Some(session) = session else { return Ok(()) };
    let applies = steps.workloads(&session, question)?;
    steps.execution(applies.as_deref(), question.database.as_deref(), &states)
}

/// The session that the user would get.
fn session(snapshot: &Snapshot, question: &RouteQuestion) -> Result<Option<SessionState>, ExplainRouteError> {
    let catalog = &snapshot.catalog;
    let Some(user) = &question.user else {
        if question.workload.is_some() || question.roles.is_some() {
            return Err(ExplainRouteError::NoUser);
        }
        return Ok(None);
    };
    let name = Name::parse(user)?;
    let found = catalog.users().named(&name);
    if !snapshot.superuser() && found.is_none_or(|user| user.id != snapshot.session.user_id) {
        return Err(ExplainRouteError::OtherUser);
    }
    let nearest = || crate::plan::nearest(&name, catalog.users().names());
    let user =
        found.ok_or_else(|| PlanError::Missing { kind: ObjectKind::User, nearest: nearest(), name: name.clone() })?;
    let login = Login {
        user: user.name.clone(),
        session_id: String::new(),
        process_id: 0,
        client_address: None,
        time: snapshot.session.login_time,
        node: snapshot.session.node_name.clone(),
    };
    let workload = question.workload.iter().map(|workload| ("workload".to_owned(), workload.clone()));
    let parameters: Vec<(String, String)> = workload.collect();
    let (mut session, _) = SessionState::open(login, &parameters, catalog, &mut rand::rng())?;
    if let Some(roles) = &question.roles {
        let roles = roles.iter().map(|role| granted_role(catalog, &user.name, role));
        session.apply(SessionChange::Roles(roles.collect::<Result<_, _>>()?), catalog, &mut rand::rng());
        // What was named at connect is open, or not, by the roles too.
        if let Some(workload) = &question.workload {
            let name = Name::parse(workload)?;
            if may_use(&session, catalog, &name) == Some(true) {
                let wish = WorkloadWish::Named(name);
                session.apply(SessionChange::Workload(wish), catalog, &mut rand::rng());
            }
        }
    }
    Ok(Some(session))
}

fn granted_role(catalog: &Catalog, user: &Name, role: &str) -> Result<RoleId, ExplainRouteError> {
    let name = Name::parse(role.trim())?;
    let Some(found) = catalog.roles().named(&name) else {
        let nearest = crate::plan::nearest(&name, catalog.roles().names());
        return Err(PlanError::Missing { kind: ObjectKind::Role, name, nearest }.into());
    };
    match catalog.users().named(user) {
        Some(user) if catalog.has_role(user.id, found.id) => Ok(found.id),
        _ => Err(ExplainRouteError::RoleNotGranted { role: found.name.clone(), user: user.clone() }),
    }
}

type Done = Result<(), ExplainRouteError>;

impl Steps<'_, '_> {
    fn push(&mut self, stage: &str, subject: &Subject<'_>, outcome: &str, reason: &str) -> Done {
        self.step += 1;
        self.rows.push([
            self.step.into(),
            Cell::from(stage.to_owned()),
            subject.object.map(str::to_owned).into(),
            subject.node.map(str::to_owned).into(),
            subject.place.map(|(host, _)| host.to_string()).into(),
            subject.place.map(|(_, port)| port).into(),
            Cell::from(outcome.to_owned()),
            Cell::from(reason.to_owned()),
        ])?;
        Ok(())
    }

    fn rules(&mut self, address: IpAddr) -> Done {
        let considered = self.snapshot.catalog.rules_considered(address, RULES_LISTED_MAX);
        for (rule, verdict) in &considered.rules {
            let outcome = match verdict {
                RuleVerdict::NoMatch => "no match",
                RuleVerdict::Applied => "applied",
                RuleVerdict::LessSpecific | RuleVerdict::Younger => "outranked",
            };
            let reason = format!("{}: {}", rule.source.typed, verdict.as_str());
            let subject = Subject { object: Some(rule.name.as_str()), ..Subject::default() };
            self.push("routing rule", &subject, outcome, &reason)?;
        }
        if considered.unlisted > 0 {
            let reason = format!("rules that are no more specific than these: {}", considered.unlisted);
            self.push("routing rule", &Subject::default(), "not listed", &reason)?;
        }
        let other = self.snapshot.catalog.routing_rules().len() - considered.rules.len() - considered.unlisted;
        if other > 0 {
            let reason = format!("rules for clients of the other address family: {other}");
            self.push("routing rule", &Subject::default(), "not considered", &reason)?;
        }
        Ok(())
    }

    fn stage(&mut self, stage: &StageTrace) -> Done {
        let catalog = &self.snapshot.catalog;
        let node_name = |id| catalog.nodes().find(id).map(|node| node.name.as_str());
        let (name, object) = match stage.stage {
            Stage::Rule { group, .. } => {
                ("load balance group", catalog.load_balance_groups().find(group).map(|group| group.name.as_str()))
            }
            Stage::Interior { subcluster } => {
                (stage_name(stage.stage), catalog.subclusters().find(subcluster).map(|found| found.name.as_str()))
            }
            _ => (stage_name(stage.stage), Some(stage.policy.as_str())),
        };
        for (candidate, skip) in &stage.skipped {
            let place = candidate.place.as_ref().map(|(host, port)| (host, *port));
            let subject = Subject { object, node: node_name(candidate.node), place };
            self.push(name, &subject, "skipped", skip.as_str())?;
        }
        for (index, target) in stage.available.iter().enumerate() {
            let subject = Subject { object, node: node_name(target.node), place: Some((&target.host, target.port)) };
            if stage.chosen == Some(index) {
                self.push(name, &subject, "chosen", &chosen_among(stage))?;
            } else {
                self.push(name, &subject, "available", &format!("the policy is {}", stage.policy.as_str()))?;
            }
        }
        if stage.available.is_empty() && stage.skipped.is_empty() {
            let subject = Subject { object, ..Subject::default() };
            self.push(name, &subject, "empty", "there is nobody to choose from")?;
        }
        Ok(())
    }

    /// What it comes to, for clients that can be told to go elsewhere and for those that cannot.
    fn connection(&mut self, trace: &Trace) -> Done {
        let (target, delivery) = match &trace.decision.outcome {
            Outcome::Stay(reason) => {
                return self.push("connection", &Subject::default(), "stay", reason.as_str());
            }
            Outcome::Go(target, delivery) => (target, *delivery),
        };
        let node = self.snapshot.catalog.nodes().find(target.node).map(|node| node.name.as_str());
        let subject = |object| Subject { object, node, place: Some((&target.host, target.port)) };
        match delivery {
            Delivery::Own => self.push("connection", &subject(None), "own node", "the member that is asked was chosen"),
            Delivery::Proxy => {
                self.push("connection", &subject(None), "proxy", "no member of the cluster answers there")
            }
            Delivery::Redirect => {
                let told = "the client is told to connect there";
                self.push("connection", &subject(Some("Vertica client")), "redirect", told)?;
                let passed = "its protocol knows no redirect: it is passed on by the member that is asked";
                self.push("connection", &subject(Some("PostgreSQL client")), "proxy", passed)
            }
        }
    }

    /// Every workload rule, in the order of priority; returns the one that applies.
    fn workloads(
        &mut self,
        session: &SessionState,
        question: &RouteQuestion,
    ) -> Result<Option<String>, ExplainRouteError> {
        let catalog = &self.snapshot.catalog;
        let named = question.workload.as_deref().and_then(|name| Name::parse(name).ok());
        if let Some(name) = &named
            && catalog.rule_of_workload(name).is_none()
        {
            let subject = Subject { object: Some(name.as_str()), ..Subject::default() };
            self.push("workload", &subject, "unknown", "there is no rule of this workload: the name is left aside")?;
        }
        let applies = session.workload().cloned();
        let open = Open::new(session, catalog, named.filter(|name| applies.as_ref() == Some(name)));
        let mut rules: Vec<&WorkloadRule> = catalog.workload_rules().iter().map(AsRef::as_ref).collect();
        rules.sort_by(|a, b| b.priority.cmp(&a.priority).then_with(|| a.workload.cmp(&b.workload)));
        for rule in rules {
            let (outcome, reason) = open.verdict(rule, applies.as_ref());
            let subject = Subject { object: Some(rule.workload.as_str()), ..Subject::default() };
            self.push("workload", &subject, outcome, &reason)?;
        }
        if applies.is_none() {
            self.push("workload", &Subject::default(), "none", "no workload applies")?;
        }
        Ok(applies.map(|name| name.to_string()))
    }

    /// The nodes that could run the session's statements, and what does.
    fn execution(&mut self, workload: Option<&str>, database: Option<&str>, states: &NodeStates) -> Done {
        let catalog = &self.snapshot.catalog;
        let rule = workload.and_then(|name| Name::parse(name).ok()).and_then(|name| catalog.rule_of_workload(&name));
        let served = |subcluster: SubclusterId| rule.is_some_and(|rule| rule.subclusters.contains(&subcluster));
        let mut nodes = catalog.nodes().iter().filter(|node| served(node.subcluster)).peekable();
        if rule.is_some() && nodes.peek().is_none() {
            let reason = "no node is in the subclusters that serve the workload";
            self.push("execution", &Subject { object: workload, ..Subject::default() }, "empty", reason)?;
        }
        for node in nodes {
            let (outcome, reason) = match states.state(node.id) {
                _ if node.draining => ("skipped", Skip::Draining.as_str()),
                NodeState::Up => ("available", "in a subcluster that serves the workload"),
                NodeState::Draining => ("skipped", Skip::Draining.as_str()),
                NodeState::Down => ("skipped", Skip::Down.as_str()),
            };
            let subcluster = catalog.subclusters().find(node.subcluster).map(|found| found.name.as_str());
            self.push(
                "execution",
                &Subject { object: subcluster, node: Some(node.name.as_str()), place: None },
                outcome,
                reason,
            )?;
        }
        let own = catalog.database().name.as_str();
        let named = database.unwrap_or(own);
        let subject = Subject { object: Some(named), ..Subject::default() };
        if named.eq_ignore_ascii_case(own) {
            self.push("execution", &subject, "console", "the database is the cluster's own: the member answers itself")
        } else {
            self.push("execution", &subject, "refused", "there is no such database")
        }
    }
}

/// What is open to a session.
struct Open<'a> {
    session: &'a SessionState,
    catalog: &'a Catalog,
    /// The workload that was named and applies.
    named: Option<Name>,
    /// Granted, so that they apply without being named.
    granted: BTreeSet<Name>,
    priority_max: Option<u32>,
}

impl<'a> Open<'a> {
    fn new(session: &'a SessionState, catalog: &'a Catalog, named: Option<Name>) -> Self {
        let granted = catalog.granted_workloads(session.user_id, session.enabled_roles());
        let priority_max = granted.iter().map(|rule| rule.priority).max();
        let granted = granted.iter().map(|rule| rule.workload.clone()).collect();
        Self { session, catalog, named, granted, priority_max }
    }

    fn verdict(&self, rule: &WorkloadRule, applies: Option<&Name>) -> (&'static str, String) {
        let priority = rule.priority;
        let (granted, max) = (self.granted.contains(&rule.workload), self.priority_max.unwrap_or_default());
        match &self.named {
            Some(named) if *named == rule.workload => ("applied", "it was named".to_owned()),
            Some(named) if granted => ("outranked", format!("workload \"{named}\" was named")),
            None if granted && priority < max => ("outranked", format!("its priority {priority} is below {max}")),
            None if applies == Some(&rule.workload) => (
                "applied",
                format!("no other that is granted has a priority above {priority}; of equals one is taken by chance"),
            ),
            None if granted => ("possible", format!("of equal priority {priority}: by chance")),
            _ if may_use(self.session, self.catalog, &rule.workload) == Some(true) => {
                ("open", "it can be named, but does not apply unasked".to_owned())
            }
            _ => ("not granted", "granted neither to the user nor to a role that is on".to_owned()),
        }
    }
}
