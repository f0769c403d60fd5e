//! Meta-functions (`reference/vertica-sql.md` §5). Where their texts are known, they are the vendor's.

use switchyard_catalog::{Change, Name, ObjectKind, SettingTarget, SubclusterChange};
use switchyard_dialect::{Assignment, Ident, Literal, MetaFunction, ParameterAction, Value};

use super::words::{self, name};
use super::{Changes, ColumnKind, Order, Plan, PlanContext, Rows, SessionStep, fleet, session};
use crate::error::PlanError;
use crate::session_state::SessionChange;

/// What SHUTDOWN answers while other sessions are open.
pub const SHUTDOWN_ABORTED: &str = "Shutdown: aborting shutdown";
/// The notice before it.
pub const SHUTDOWN_ABORTED_NOTICE: &str = "Cannot shut down while users are connected";

const PROGRESS: &str = "Check v_monitor.sessions for progress.";

/// Plans a call of a meta-function whose column is to be called `column`.
pub(super) fn plan(
    function: MetaFunction,
    column: &str,
    arguments: &[Literal],
    context: &PlanContext<'_>,
) -> Result<Plan, PlanError> {
    let call = Call { function, column, arguments, context };
    call.check_arity()?;
    match function {
        MetaFunction::SetLoadBalancePolicy => {
            let policy = words::policy(call.text(0)?)?;
            let said = policy.as_str().to_lowercase();
            Ok(call.change(
                vec![Change::SetPolicy { policy }],
                format!("Successfully changed the client initiator load balancing policy to: {said}"),
            ))
        }
        MetaFunction::ResetLoadBalancePolicy => Ok(call
            .order(Order::ResetPointers, "Successfully reset stateful client load balance policies: \"roundrobin\".")),
        MetaFunction::DescribeLoadBalanceDecision => {
            let typed = call.text(0)?.trim().to_owned();
            let address = words::parse_address(&typed)?;
            Ok(call.order(Order::DescribeDecision { address, typed }, ""))
        }
        MetaFunction::SetConfigParameter => call.set_config_parameter(),
        MetaFunction::GetClientLabel => Ok(Plan::Rows(Rows::answer(column, context.session.client_label.clone()))),
        // In a query it is a function like others; alone, its column is called as it was typed.
        MetaFunction::CurrentSession => Ok(Plan::Rows(Rows::answer(column, context.session.session_id.clone()))),
        MetaFunction::SetClientLabel => call.set_client_label(),
        MetaFunction::CloseSession
        | MetaFunction::CloseUserSessions
        | MetaFunction::CloseAllSessions
        | MetaFunction::InterruptStatement
        | MetaFunction::Shutdown => call.sessions(),
        MetaFunction::StartDrainSubcluster => call.drain(true),
        MetaFunction::CancelDrainSubcluster => call.drain(false),
        MetaFunction::ShutdownSubcluster => {
            let subcluster = call.subcluster(0)?;
            let answer = format!("Shutdown message sent to subcluster ({subcluster})");
            Ok(call.order(Order::StopSubcluster { subcluster, drain_s: None }, answer))
        }
        MetaFunction::ShutdownWithDrain => call.shutdown_with_drain(),
        MetaFunction::StopMember => call.member(false),
        MetaFunction::StartMember => call.member(true),
        MetaFunction::PromoteSubclusterToPrimary => call.promote(true, "PROMOTE SUBCLUSTER TO PRIMARY"),
        MetaFunction::DemoteSubclusterToSecondary => call.promote(false, "DEMOTE SUBCLUSTER TO SECONDARY"),
        MetaFunction::HasRole => call.has_role(),
    }
}

struct Call<'a> {
    function: MetaFunction,
    column: &'a str,
    arguments: &'a [Literal],
    context: &'a PlanContext<'a>,
}

impl Call<'_> {
    fn check_arity(&self) -> Result<(), PlanError> {
        let (min, max) = self.function.arity();
        let given = self.arguments.len();
        if (min..=max).contains(&given) {
            return Ok(());
        }
        Err(PlanError::Arity { routine: self.function.name(), min, max, given })
    }

    fn wrong(&self, index: usize, expected: &'static str) -> PlanError {
        PlanError::Argument { routine: self.function.name(), number: index.saturating_add(1), expected }
    }

    fn text(&self, index: usize) -> Result<&str, PlanError> {
        match self.arguments.get(index) {
            Some(Literal::Text(text)) => Ok(text),
            _ => Err(self.wrong(index, "a string")),
        }
    }

    fn number(&self, index: usize) -> Result<i64, PlanError> {
        match self.arguments.get(index) {
            Some(Literal::Number(text) | Literal::Text(text)) => {
                text.trim().parse().map_err(|_| PlanError::Integer { text: text.clone() })
            }
            _ => Err(self.wrong(index, "an integer")),
        }
    }

    fn name(&self, index: usize) -> Result<Name, PlanError> {
        name(&Ident(self.text(index)?.to_owned()))
    }

    fn change(&self, changes: Vec<Change>, answer: impl Into<String>) -> Plan {
        let answer = Rows::answer(self.column, answer);
        Plan::Changes(Changes { changes, tag: answer.tag, answer: Some(answer), warnings: Vec::new() })
    }

    fn order(&self, order: Order, answer: impl Into<String>) -> Plan {
        Plan::Order(order, Rows::answer(self.column, answer))
    }

    /// The caller, unless a superuser: the only one whose sessions may be touched.
    fn only_user(&self) -> Result<Option<Name>, PlanError> {
        if self.context.is_superuser() { Ok(None) } else { self.context.user().map(Some) }
    }

    fn sessions(&self) -> Result<Plan, PlanError> {
        let only_user = self.only_user()?;
        Ok(match self.function {
            MetaFunction::CloseUserSessions => {
                let user = self.user(0)?;
                let answer = format!("Close all sessions for user {user} sent. {PROGRESS}");
                self.order(Order::CloseUserSessions { user }, answer)
            }
            MetaFunction::CloseAllSessions => self
                .order(Order::CloseAllSessions { only_user }, format!("Close all sessions command sent. {PROGRESS}")),
            MetaFunction::InterruptStatement => {
                let statement = u64::try_from(self.number(1)?).map_err(|_| self.wrong(1, "a statement's number"))?;
                let session_id = self.text(0)?.to_owned();
                let order = Order::InterruptStatement { session_id, statement, only_user };
                self.order(order, format!("Statement interrupt sent. {PROGRESS}"))
            }
            MetaFunction::Shutdown => {
                let force = if self.arguments.is_empty() { false } else { self.boolean(0)? };
                self.order(Order::Shutdown { force }, "Shutdown: sync complete")
            }
            _ => {
                let order = Order::CloseSession { session_id: self.text(0)?.to_owned(), only_user };
                self.order(order, format!("Session close command sent. {PROGRESS}"))
            }
        })
    }

    fn boolean(&self, index: usize) -> Result<bool, PlanError> {
        let expected = "true or false";
        match self.arguments.get(index) {
            Some(Literal::Bool(value)) => Ok(*value),
            Some(Literal::Text(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(Literal::Text(text)) if text.eq_ignore_ascii_case("false") => Ok(false),
            _ => Err(self.wrong(index, expected)),
        }
    }

    fn user(&self, index: usize) -> Result<Name, PlanError> {
        let wanted = self.name(index)?;
        let users = self.context.catalog.users();
        match users.named(&wanted) {
            Some(user) => Ok(user.name.clone()),
            None => {
                let nearest = session::nearest(&wanted, users.names());
                Err(PlanError::Missing { kind: ObjectKind::User, name: wanted, nearest })
            }
        }
    }

    fn member(&self, serve: bool) -> Result<Plan, PlanError> {
        let wanted = self.name(0)?;
        let nodes = self.context.catalog.nodes();
        let Some(node) = nodes.named(&wanted) else {
            let nearest = session::nearest(&wanted, nodes.names());
            return Err(PlanError::Missing { kind: ObjectKind::Node, name: wanted, nearest });
        };
        let node = node.name.clone();
        let answer = format!("Member {node} {}", if serve { "started" } else { "stopped" });
        Ok(self.order(Order::Member { node, serve }, answer))
    }

    fn subcluster(&self, index: usize) -> Result<Name, PlanError> {
        let wanted = self.name(index)?;
        let subclusters = self.context.catalog.subclusters();
        match subclusters.named(&wanted) {
            Some(subcluster) => Ok(subcluster.name.clone()),
            None => {
                let nearest = session::nearest(&wanted, subclusters.names());
                Err(PlanError::Missing { kind: ObjectKind::Subcluster, name: wanted, nearest })
            }
        }
    }

    fn set_config_parameter(&self) -> Result<Plan, PlanError> {
        let parameter = Ident(self.text(0)?.to_owned());
        let action = match self.arguments.get(1) {
            Some(Literal::Null) => ParameterAction::Clear(vec![parameter]),
            Some(Literal::Text(text)) => set(parameter, Value::Text(text.clone())),
            Some(Literal::Number(text)) => set(parameter, Value::Number(text.clone())),
            Some(Literal::Bool(on)) => set(parameter, Value::Word(on.to_string())),
            None => return Err(self.wrong(1, "a value")),
        };
        let target = match self.arguments.get(2) {
            None | Some(Literal::Null) => SettingTarget::Database,
            Some(_) => SettingTarget::Node(self.name(2)?),
        };
        let answer = Rows::answer(self.column, "Parameter set successfully");
        let mut planned = fleet::parameters(answer.tag, &target, &action, self.context)?;
        planned.answer = Some(answer);
        Ok(Plan::Changes(planned))
    }

    fn set_client_label(&self) -> Result<Plan, PlanError> {
        let label = self.text(0)?.to_owned();
        let answer = Rows::answer(self.column, format!("client_label set to {label}"));
        Ok(Plan::Session(SessionStep {
            changes: vec![SessionChange::Label(label)],
            tag: answer.tag,
            answer: Some(answer),
            warnings: Vec::new(),
        }))
    }

    /// An empty name is every subcluster.
    fn drain(&self, draining: bool) -> Result<Plan, PlanError> {
        let action = if draining { "START DRAIN" } else { "CANCEL DRAIN" };
        let name = if self.text(0)?.is_empty() { None } else { Some(self.subcluster(0)?) };
        let targets: Vec<String> = match &name {
            Some(name) => vec![name.to_string()],
            None => self.context.catalog.subclusters().iter().map(|row| row.name.to_string()).collect(),
        };
        let lines: Vec<String> = targets.iter().map(|target| format!("Targeted subcluster: '{target}'")).collect();
        let answer = format!("{}\nAction: {action}", lines.join("\n"));
        Ok(self.change(vec![Change::DrainSubcluster { name, draining }], answer))
    }

    /// A negative time only drains, an empty name is every subcluster.
    fn shutdown_with_drain(&self) -> Result<Plan, PlanError> {
        let name = if self.text(0)?.is_empty() { None } else { Some(self.subcluster(0)?) };
        if let Ok(drain_s) = u64::try_from(self.number(1)?) {
            let Some(subcluster) = name else {
                return Err(PlanError::NotSupported {
                    what: "stopping every subcluster at once".to_owned(),
                    hint: Some("Name one; SELECT SHUTDOWN() stops all.".to_owned()),
                });
            };
            let answer = format!("Shutdown message sent to subcluster ({subcluster})");
            return Ok(self.order(Order::StopSubcluster { subcluster, drain_s: Some(drain_s) }, answer));
        }
        let targets: Vec<String> = match &name {
            Some(name) => vec![name.to_string()],
            None => self.context.catalog.subclusters().iter().map(|row| row.name.to_string()).collect(),
        };
        let lines: Vec<String> =
            targets.iter().map(|target| format!("Set subcluster ({target}) to draining state")).collect();
        Ok(self.change(vec![Change::DrainSubcluster { name, draining: true }], lines.join("\n")))
    }

    fn promote(&self, primary: bool, answer: &str) -> Result<Plan, PlanError> {
        let change = Change::AlterSubcluster { name: self.subcluster(0)?, change: SubclusterChange::Primary(primary) };
        Ok(self.change(vec![change], answer))
    }

    fn has_role(&self) -> Result<Plan, PlanError> {
        let last = self.arguments.len().saturating_sub(1);
        let role = session::role(&Ident(self.text(last)?.to_owned()), self.context)?;
        let user = match last {
            0 => self.context.session.user_id,
            _ => {
                let user = self.user(0)?;
                self.context.catalog.users().named(&user).map_or(self.context.session.user_id, |user| user.id)
            }
        };
        let has = self.context.catalog.has_role(user, role);
        Ok(Plan::Rows(Rows {
            columns: vec![(self.column.to_owned(), ColumnKind::Bool)],
            rows: vec![vec![Some(if has { "t" } else { "f" }.to_owned())]],
            tag: "SELECT 1",
        }))
    }
}

fn set(name: Ident, value: Value) -> ParameterAction {
    ParameterAction::Set(vec![Assignment { name, value }])
}
