//! Statements of every kind, with names and texts that are hard to print.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;
use switchyard_dialect::{
    AddressAction, Assignment, AuthenticationAccess, AuthenticationAction, ConnectionScope, CursorOptions,
    DatabaseAction, DiscardWhat, FaultGroupAction, FetchCount, FetchDirection, GroupAction, GroupMembers, Ident,
    Literal, MappingOptions, MetaFunction, NodeAction, NodeType, OrDefault, ParameterAction, Procedure, RoleChoice,
    RuleAction, RuleTarget, SecretText, Selection, SetScope, SetValue, Show, Statement, SubclusterAction, UserAction,
    UserParameter, Value, WorkloadChoice,
};

type Any<T> = BoxedStrategy<T>;

/// Every secret holds this, and nothing else does.
pub const SECRET_MARK: &str = "%secret%";

/// Words of the grammar, in several cases: the names most easily mistaken.
const WORDS: &[&str] = &[
    "route",
    "RULE",
    "workload",
    "Filter",
    "policy",
    "priority",
    "port",
    "to",
    "ON",
    "for",
    "with",
    "if",
    "exists",
    "cascade",
    "default",
    "DEFAULT",
    "none",
    "NONE",
    "all",
    "ALL",
    "except",
    "public",
    "PUBLIC",
    "mapping",
    "server",
    "options",
    "user",
    "password",
    "set",
    "clear",
    "parameter",
    "add",
    "drop",
    "remove",
    "rename",
    "enabled",
    "enable",
    "node",
    "fault",
    "group",
    "subcluster",
    "address",
    "upstream",
    "drain",
    "within",
    "then",
    "session",
    "local",
    "role",
    "time",
    "zone",
    "names",
    "schema",
    "transaction",
    "characteristics",
    "authorization",
    "admin",
    "option",
    "authentication",
    "usage",
    "savepoint",
    "work",
    "current",
    "database",
    "available",
    "available_roles",
    "enabled_roles",
    "search_path",
    "host",
    "primary",
    "secondary",
    "standby",
    "is",
    "reset",
    "select",
    "as",
    "true",
    "null",
    "any",
    "replace",
    "identified",
    "by",
    "maxconnections",
    "runtimecap",
    "IdleSessionTimeout",
    "profile",
    "resource",
    "e",
    "b",
    "x",
    "n",
    "u",
    "U",
    "constraints",
    "privileges",
    "off",
    "on",
];

pub fn name() -> Any<String> {
    prop_oneof![
        4 => "[a-z][a-z0-9_]{0,8}",
        2 => "[A-Za-z_][A-Za-z0-9_$]{0,8}",
        3 => select(WORDS).prop_map(str::to_owned),
        1 => r#"[a-z "'.;$\\-]{1,8}"#,
        1 => "[^\u{0}]{1,8}",
        1 => "\\PC{1,16}",
        1 => "[a-z]{126,128}",
    ]
    .boxed()
}

/// Pieces of statements.
pub fn token() -> Any<String> {
    let signs = [
        ",",
        ";",
        "(",
        ")",
        "=",
        ".",
        "-",
        "+",
        "'",
        "\"",
        "$$",
        "$a$",
        "/*",
        "*/",
        "--",
        "\n",
        "E'",
        "U&'",
        "\\",
        "1",
        "1.5",
        "::",
        "[",
        "]",
        "*",
        "é",
        "=>",
        ":=",
        "$1",
        "''",
        "\"\"",
        "'a'",
        "\"a\"",
        "9999999999999999999999",
    ];
    let verbs = [
        "CREATE",
        "ALTER",
        "DROP",
        "GRANT",
        "REVOKE",
        "SHOW",
        "CALL",
        "SELECT",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "RELEASE",
        "RESTORE",
        "CATALOG",
        "VERSION",
        "ROUTING",
        "LOAD",
        "BALANCE",
        "NETWORK",
        "INTERFACE",
        "SUBNET",
        "FROM",
        "WHERE",
        "EXPORT",
        "METHOD",
        "TLS",
        "NO",
        "FALLTHROUGH",
        "ENABLED",
        "ROLES",
        "WORKLOADS",
        "ISOLATION",
        "LEVEL",
        "READ",
        "ONLY",
        "hg_drop_table_group",
        "has_role",
        "EXPLAIN",
        "TABLE",
        "INSERT",
        "INTO",
        "VALUES",
        "IDENTIFIED",
    ];
    prop_oneof![
        select(signs.to_vec()).prop_map(str::to_owned),
        select(verbs.to_vec()).prop_map(str::to_owned),
        select(WORDS).prop_map(str::to_owned),
        name(),
    ]
    .boxed()
}

fn ident() -> Any<Ident> {
    name().prop_map(Ident).boxed()
}

fn idents() -> Any<Vec<Ident>> {
    vec(ident(), 1..4).boxed()
}

fn text() -> Any<String> {
    prop_oneof![4 => "[a-z0-9./: ]{0,12}", 1 => r#"['"\\$;/*-]{0,6}"#, 1 => "[^\u{0}]{0,8}"].boxed()
}

fn secret() -> Any<SecretText> {
    text().prop_map(|text| SecretText::new(format!("{text}{SECRET_MARK}"))).boxed()
}

fn natural() -> Any<u64> {
    prop_oneof![0..100_u64, Just(i64::MAX.unsigned_abs())].boxed()
}

fn number() -> Any<String> {
    select(&["0", "1", "-1", "+7", "3.5", "-2e10", ".5", "1e-3", "99999999999999999999999"][..])
        .prop_map(str::to_owned)
        .boxed()
}

fn literal() -> Any<Literal> {
    prop_oneof![
        text().prop_map(Literal::Text),
        number().prop_map(Literal::Number),
        any::<bool>().prop_map(Literal::Bool),
        Just(Literal::Null),
    ]
    .boxed()
}

fn value() -> Any<Value> {
    prop_oneof![text().prop_map(Value::Text), number().prop_map(Value::Number), name().prop_map(Value::Word)].boxed()
}

/// A parameter's name may have dots.
fn parameter() -> Any<Ident> {
    prop_oneof![4 => ident(), 1 => vec("[a-z]{1,5}|all|to", 2..4).prop_map(|parts| Ident(parts.join(".")))].boxed()
}

fn assignments() -> Any<Vec<Assignment>> {
    let plain = (parameter(), value()).prop_map(|(name, value)| Assignment { name, value });
    let secret = text().prop_map(|text| Assignment {
        name: Ident("binddn_Password".to_owned()),
        value: Value::Text(format!("{text}{SECRET_MARK}")),
    });
    vec(prop_oneof![4 => plain, 1 => secret], 1..4).boxed()
}

fn parameter_action() -> Any<ParameterAction> {
    prop_oneof![assignments().prop_map(ParameterAction::Set), vec(parameter(), 1..4).prop_map(ParameterAction::Clear),]
        .boxed()
}

fn selection() -> Any<Selection> {
    prop_oneof![Just(Selection::All), vec(parameter(), 1..4).prop_map(Selection::Named)].boxed()
}

fn one_or_all() -> Any<Selection> {
    prop_oneof![Just(Selection::All), parameter().prop_map(|name| Selection::Named(vec![name]))].boxed()
}

fn or_default() -> Any<OrDefault> {
    prop_oneof![Just(OrDefault::Default), ident().prop_map(OrDefault::Named)].boxed()
}

fn members() -> Any<GroupMembers> {
    prop_oneof![
        idents().prop_map(GroupMembers::Addresses),
        idents().prop_map(GroupMembers::FaultGroups),
        idents().prop_map(GroupMembers::Subclusters),
    ]
    .boxed()
}

fn address_action() -> Any<AddressAction> {
    prop_oneof![
        ident().prop_map(AddressAction::Rename),
        (text(), option::of(natural())).prop_map(|(address, port)| AddressAction::Set { address, port }),
        any::<bool>().prop_map(AddressAction::Enable),
    ]
    .boxed()
}

fn addresses() -> Vec<Any<Statement>> {
    let new = || (ident(), ident(), text(), option::of(natural()), option::of(any::<bool>()));
    let dropped = || (any::<bool>(), ident(), any::<bool>());
    vec![
        new()
            .prop_map(|(name, node, address, port, enabled)| Statement::CreateNetworkAddress {
                name,
                node,
                address,
                port,
                enabled,
            })
            .boxed(),
        new()
            .prop_map(|(name, node, address, port, enabled)| Statement::CreateNetworkInterface {
                name,
                node,
                address,
                port,
                enabled,
            })
            .boxed(),
        (ident(), address_action()).prop_map(|(name, action)| Statement::AlterNetworkAddress { name, action }).boxed(),
        (ident(), address_action())
            .prop_map(|(name, action)| Statement::AlterNetworkInterface { name, action })
            .boxed(),
        dropped()
            .prop_map(|(if_exists, name, cascade)| Statement::DropNetworkAddress { if_exists, name, cascade })
            .boxed(),
        dropped()
            .prop_map(|(if_exists, name, cascade)| Statement::DropNetworkInterface { if_exists, name, cascade })
            .boxed(),
        (ident(), text()).prop_map(|(name, prefix)| Statement::CreateSubnet { name, prefix }).boxed(),
        (ident(), ident()).prop_map(|(name, rename_to)| Statement::AlterSubnet { name, rename_to }).boxed(),
        (any::<bool>(), idents(), any::<bool>())
            .prop_map(|(if_exists, names, cascade)| Statement::DropSubnet { if_exists, names, cascade })
            .boxed(),
    ]
}

fn groups() -> Vec<Any<Statement>> {
    let action = prop_oneof![
        ident().prop_map(GroupAction::Rename),
        text().prop_map(GroupAction::Filter),
        text().prop_map(GroupAction::Policy),
        members().prop_map(GroupAction::Add),
        members().prop_map(GroupAction::Drop),
    ];
    vec![
        (ident(), members(), text(), option::of(text()))
            .prop_map(|(name, members, filter, policy)| {
                let filter = (!matches!(members, GroupMembers::Addresses(_))).then_some(filter);
                Statement::CreateLoadBalanceGroup { name, members, filter, policy }
            })
            .boxed(),
        (ident(), action).prop_map(|(name, action)| Statement::AlterLoadBalanceGroup { name, action }).boxed(),
        (any::<bool>(), ident(), any::<bool>())
            .prop_map(|(if_exists, name, cascade)| Statement::DropLoadBalanceGroup { if_exists, name, cascade })
            .boxed(),
    ]
}

fn rules() -> Vec<Any<Statement>> {
    let target = || prop_oneof![ident().prop_map(RuleTarget::Named), ident().prop_map(RuleTarget::Workload)];
    let action = prop_oneof![
        ident().prop_map(RuleAction::Rename),
        text().prop_map(RuleAction::Route),
        ident().prop_map(RuleAction::Group),
        ident().prop_map(RuleAction::Workload),
        idents().prop_map(RuleAction::Subclusters),
        natural().prop_map(RuleAction::Priority),
        idents().prop_map(RuleAction::AddSubclusters),
        idents().prop_map(RuleAction::RemoveSubclusters),
    ];
    vec![
        (ident(), text(), ident())
            .prop_map(|(name, route, group)| Statement::CreateRoutingRule { name, route, group })
            .boxed(),
        (option::of(ident()), ident(), idents(), option::of(natural()))
            .prop_map(|(name, workload, subclusters, priority)| Statement::CreateWorkloadRule {
                name,
                workload,
                subclusters,
                priority,
            })
            .boxed(),
        (target(), action).prop_map(|(target, action)| Statement::AlterRoutingRule { target, action }).boxed(),
        (any::<bool>(), target())
            .prop_map(|(if_exists, target)| Statement::DropRoutingRule { if_exists, target })
            .boxed(),
    ]
}

fn grants() -> Vec<Any<Statement>> {
    vec![
        (ident(), idents()).prop_map(|(workload, grantees)| Statement::GrantWorkload { workload, grantees }).boxed(),
        (ident(), idents()).prop_map(|(workload, grantees)| Statement::RevokeWorkload { workload, grantees }).boxed(),
        (ident(), idents()).prop_map(|(name, grantees)| Statement::GrantAuthentication { name, grantees }).boxed(),
        (ident(), idents()).prop_map(|(name, grantees)| Statement::RevokeAuthentication { name, grantees }).boxed(),
        (idents(), idents(), any::<bool>())
            .prop_map(|(roles, grantees, admin)| Statement::GrantRole { roles, grantees, admin })
            .boxed(),
        (any::<bool>(), idents(), idents(), any::<bool>())
            .prop_map(|(admin_only, roles, grantees, cascade)| Statement::RevokeRole {
                admin_only,
                roles,
                grantees,
                cascade,
            })
            .boxed(),
    ]
}

fn role_choice() -> Any<RoleChoice> {
    prop_oneof![
        idents().prop_map(RoleChoice::Named),
        Just(RoleChoice::None),
        vec(ident(), 0..3).prop_map(RoleChoice::AllExcept),
    ]
    .boxed()
}

fn user_parameter() -> Any<UserParameter> {
    let cap = || option::of(text());
    let scope = select(&[ConnectionScope::Database, ConnectionScope::Node][..]);
    prop_oneof![
        any::<bool>().prop_map(UserParameter::Lock),
        Just(UserParameter::ExpirePassword),
        (secret(), option::of(secret()))
            .prop_map(|(password, replace)| UserParameter::IdentifiedBy { password, replace }),
        cap().prop_map(UserParameter::GracePeriod),
        cap().prop_map(UserParameter::IdleSessionTimeout),
        cap().prop_map(UserParameter::RuntimeCap),
        option::of((natural(), scope)).prop_map(UserParameter::MaxConnections),
        cap().prop_map(UserParameter::MemoryCap),
        cap().prop_map(UserParameter::TempSpaceCap),
        option::of(ident()).prop_map(UserParameter::Profile),
        (ident(), option::of(ident())).prop_map(|(pool, subcluster)| UserParameter::ResourcePool { pool, subcluster }),
        option::of(idents()).prop_map(UserParameter::SearchPath),
        text().prop_map(UserParameter::SecurityAlgorithm),
    ]
    .boxed()
}

/// Each kind of parameter at most once.
fn user_parameters(least: usize) -> Any<Vec<UserParameter>> {
    vec(user_parameter(), least..5)
        .prop_map(|mut parameters| {
            let mut seen = Vec::new();
            parameters.retain(|parameter| {
                let kind = std::mem::discriminant(parameter);
                let new = !seen.contains(&kind);
                seen.push(kind);
                new
            });
            parameters
        })
        .boxed()
}

fn users() -> Vec<Any<Statement>> {
    let action = prop_oneof![
        3 => user_parameters(1).prop_map(UserAction::Parameters),
        1 => role_choice().prop_map(UserAction::DefaultRole),
        1 => ident().prop_map(UserAction::Rename),
        1 => parameter_action().prop_map(UserAction::Parameter),
        1 => parameter_action().prop_map(UserAction::RoleParameter),
    ];
    let dropped = || (any::<bool>(), idents(), any::<bool>());
    vec![
        (ident(), user_parameters(0)).prop_map(|(name, parameters)| Statement::CreateUser { name, parameters }).boxed(),
        (ident(), action).prop_map(|(name, action)| Statement::AlterUser { name, action }).boxed(),
        dropped().prop_map(|(if_exists, names, cascade)| Statement::DropUser { if_exists, names, cascade }).boxed(),
        ident().prop_map(|name| Statement::CreateRole { name }).boxed(),
        (ident(), ident()).prop_map(|(name, rename_to)| Statement::AlterRole { name, rename_to }).boxed(),
        dropped().prop_map(|(if_exists, names, cascade)| Statement::DropRole { if_exists, names, cascade }).boxed(),
    ]
}

fn access() -> Any<AuthenticationAccess> {
    prop_oneof![
        Just(AuthenticationAccess::Local),
        (option::of(any::<bool>()), text()).prop_map(|(tls, network)| AuthenticationAccess::Host { tls, network }),
    ]
    .boxed()
}

fn authentications() -> Vec<Any<Statement>> {
    let action = prop_oneof![
        ident().prop_map(AuthenticationAction::Rename),
        any::<bool>().prop_map(AuthenticationAction::Enable),
        text().prop_map(AuthenticationAction::Method),
        access().prop_map(AuthenticationAction::Access),
        natural().prop_map(AuthenticationAction::Priority),
        any::<bool>().prop_map(AuthenticationAction::Fallthrough),
        assignments().prop_map(AuthenticationAction::Set),
        vec(parameter(), 1..4).prop_map(AuthenticationAction::Clear),
    ];
    vec![
        (ident(), text(), access(), any::<bool>())
            .prop_map(|(name, method, access, fallthrough)| Statement::CreateAuthentication {
                name,
                method,
                access,
                fallthrough,
            })
            .boxed(),
        (ident(), action).prop_map(|(name, action)| Statement::AlterAuthentication { name, action }).boxed(),
        (any::<bool>(), idents(), any::<bool>())
            .prop_map(|(if_exists, names, cascade)| Statement::DropAuthentication { if_exists, names, cascade })
            .boxed(),
    ]
}

fn mappings() -> Vec<Any<Statement>> {
    // At least one option; a password is set or dropped.
    let options = |alter: bool| {
        (option::of(text()), option::of(secret()), text(), any::<bool>()).prop_map(
            move |(user, password, other, drop)| {
                let drop_password = alter && drop && password.is_none();
                let empty = password.is_none() && !drop_password;
                MappingOptions { user: user.or(empty.then_some(other)), password, drop_password }
            },
        )
    };
    let whose = || (option::of(ident()), option::of(ident()));
    vec![
        (whose(), options(false))
            .prop_map(|((user, server), options)| Statement::CreateUserMapping { user, server, options })
            .boxed(),
        (whose(), options(true))
            .prop_map(|((user, server), options)| Statement::AlterUserMapping { user, server, options })
            .boxed(),
        (any::<bool>(), whose())
            .prop_map(|(if_exists, (user, server))| Statement::DropUserMapping { if_exists, user, server })
            .boxed(),
    ]
}

fn node_action() -> Any<NodeAction> {
    let types = [NodeType::Permanent, NodeType::Ephemeral, NodeType::Standby, NodeType::Execute];
    prop_oneof![
        or_default().prop_map(NodeAction::ExportOn),
        select(types.to_vec()).prop_map(NodeAction::Type),
        option::of(ident()).prop_map(NodeAction::Replace),
        Just(NodeAction::Reset),
        parameter_action().prop_map(NodeAction::Parameter),
        (text(), option::of(natural())).prop_map(|(host, port)| NodeAction::Address { host, port }),
        option::of(secret()).prop_map(NodeAction::Upstream),
        ident().prop_map(NodeAction::Rename),
        (option::of(text()), any::<bool>())
            .prop_map(|(within, close)| NodeAction::Drain { then_close: close && within.is_some(), within }),
        Just(NodeAction::CancelDrain),
    ]
    .boxed()
}

fn topology() -> Vec<Any<Statement>> {
    let database_action = prop_oneof![
        or_default().prop_map(DatabaseAction::ExportOn),
        Just(DatabaseAction::DropAllFaultGroups),
        Just(DatabaseAction::ResetStandby),
        parameter_action().prop_map(DatabaseAction::Parameter),
        one_or_all().prop_map(DatabaseAction::Reset),
    ];
    let fault_group_action = prop_oneof![
        ident().prop_map(FaultGroupAction::Rename),
        ident().prop_map(FaultGroupAction::AddNode),
        ident().prop_map(FaultGroupAction::DropNode),
        ident().prop_map(FaultGroupAction::AddChild),
        ident().prop_map(FaultGroupAction::DropChild),
    ];
    let subcluster_action = prop_oneof![
        ident().prop_map(SubclusterAction::Rename),
        Just(SubclusterAction::SetDefault),
        idents().prop_map(SubclusterAction::AddNodes),
        idents().prop_map(SubclusterAction::DropNodes),
    ];
    vec![
        (or_default(), database_action)
            .prop_map(|(database, action)| Statement::AlterDatabase { database, action })
            .boxed(),
        (ident(), node_action()).prop_map(|(name, action)| Statement::AlterNode { name, action }).boxed(),
        (ident(), text(), option::of(natural()), option::of(ident()))
            .prop_map(|(name, host, port, subcluster)| Statement::CreateNode { name, host, port, subcluster })
            .boxed(),
        (any::<bool>(), ident(), any::<bool>())
            .prop_map(|(if_exists, name, cascade)| Statement::DropNode { if_exists, name, cascade })
            .boxed(),
        ident().prop_map(|name| Statement::CreateFaultGroup { name }).boxed(),
        (ident(), fault_group_action).prop_map(|(name, action)| Statement::AlterFaultGroup { name, action }).boxed(),
        (any::<bool>(), ident()).prop_map(|(if_exists, name)| Statement::DropFaultGroup { if_exists, name }).boxed(),
        (ident(), option::of(any::<bool>()))
            .prop_map(|(name, primary)| Statement::CreateSubcluster { name, primary })
            .boxed(),
        (ident(), subcluster_action).prop_map(|(name, action)| Statement::AlterSubcluster { name, action }).boxed(),
        (any::<bool>(), ident(), any::<bool>())
            .prop_map(|(if_exists, name, cascade)| Statement::DropSubcluster { if_exists, name, cascade })
            .boxed(),
    ]
}

fn shows() -> Any<Statement> {
    prop_oneof![
        Just(Show::Workload),
        Just(Show::AvailableWorkloads),
        Just(Show::AvailableRoles),
        Just(Show::EnabledRoles),
        Just(Show::All),
        selection().prop_map(Show::Session),
        selection().prop_map(Show::Current),
        (or_default(), selection()).prop_map(|(database, selection)| Show::Database(database, selection)),
        (ident(), selection()).prop_map(|(node, selection)| Show::Node(node, selection)),
        (ident(), selection()).prop_map(|(user, selection)| Show::User(user, selection)),
        parameter().prop_map(Show::Parameter),
        select(&["TIME ZONE", "TRANSACTION ISOLATION LEVEL", "SESSION AUTHORIZATION"][..])
            .prop_map(|words| Show::Parameter(Ident(words.to_owned()))),
    ]
    .prop_map(Statement::Show)
    .boxed()
}

fn modes(least: usize) -> Any<Vec<String>> {
    let modes = [
        "ISOLATION LEVEL SERIALIZABLE",
        "ISOLATION LEVEL REPEATABLE READ",
        "ISOLATION LEVEL READ COMMITTED",
        "ISOLATION LEVEL READ UNCOMMITTED",
        "READ ONLY",
        "READ WRITE",
        "DEFERRABLE",
        "NOT DEFERRABLE",
    ];
    vec(select(modes.to_vec()).prop_map(str::to_owned), least..4).boxed()
}

fn sessions() -> Vec<Any<Statement>> {
    let workload = prop_oneof![
        ident().prop_map(WorkloadChoice::Named),
        Just(WorkloadChoice::Default),
        Just(WorkloadChoice::None),
    ];
    let values = prop_oneof![Just(SetValue::Default), vec(value(), 1..4).prop_map(SetValue::Values)];
    let discards = [DiscardWhat::All, DiscardWhat::Plans, DiscardWhat::Sequences, DiscardWhat::Temp];
    vec![
        workload.prop_map(Statement::SetSessionWorkload).boxed(),
        prop_oneof![role_choice(), Just(RoleChoice::Default)].prop_map(Statement::SetRole).boxed(),
        shows(),
        parameter_action().prop_map(Statement::AlterSession).boxed(),
        (select(&[SetScope::Session, SetScope::Local][..]), parameter(), values)
            .prop_map(|(scope, name, values)| Statement::Set { scope, name, values })
            .boxed(),
        (any::<bool>(), modes(1)).prop_map(|(session, modes)| Statement::SetTransaction { session, modes }).boxed(),
        one_or_all().prop_map(Statement::Reset).boxed(),
        select(discards.to_vec()).prop_map(Statement::Discard).boxed(),
        (any::<bool>(), modes(0)).prop_map(|(start, modes)| Statement::Begin { start, modes }).boxed(),
        select(&[Statement::Commit, Statement::Rollback][..]).boxed(),
        ident().prop_map(Statement::Savepoint).boxed(),
        ident().prop_map(Statement::ReleaseSavepoint).boxed(),
        ident().prop_map(Statement::RollbackTo).boxed(),
        natural().prop_map(|version| Statement::RestoreCatalog { version }).boxed(),
    ]
}

/// Cursors, prepared statements and notifications.
fn session_objects() -> Vec<Any<Statement>> {
    let query = || {
        Union::new(sql()).prop_filter_map("a query", |statement| match statement {
            Statement::Sql(query) if matches!(*query, sqlparser::ast::Statement::Query(_)) => Some(query),
            _ => None,
        })
    };
    let count = || prop_oneof![any::<i32>().prop_map(FetchCount::Rows), Just(FetchCount::All)];
    let direction = prop_oneof![
        count().prop_map(FetchDirection::Forward),
        count().prop_map(FetchDirection::Backward),
        any::<i32>().prop_map(FetchDirection::Absolute),
        any::<i32>().prop_map(FetchDirection::Relative),
    ];
    let options = (any::<bool>(), option::of(any::<bool>()), any::<bool>())
        .prop_map(|(binary, scroll, hold)| CursorOptions { binary, scroll, hold });
    let types = select(&["int4", "text[]", "numeric(10, 2)", "timestamp with time zone", "\"char\""][..]);
    let inner = Union::new(addresses().into_iter().chain(users()).chain(sql()));
    vec![
        (ident(), options, query())
            .prop_map(|(name, options, query)| Statement::DeclareCursor { name, options, query })
            .boxed(),
        (ident(), direction, any::<bool>())
            .prop_map(|(name, direction, moves)| Statement::FetchCursor { name, direction, moves })
            .boxed(),
        option::of(ident()).prop_map(Statement::CloseCursor).boxed(),
        (ident(), vec(types.prop_map(str::to_owned), 0..3), inner)
            .prop_map(|(name, types, statement)| Statement::Prepare {
                name,
                types,
                text: SecretText::new(statement.to_string()),
                statement: Box::new(statement),
            })
            .boxed(),
        (ident(), select(&["", "(1)", "('it''s', NULL, -5)", "('2020-01-01'::date, $1)"][..]))
            .prop_map(|(name, arguments)| {
                let parsed = switchyard_dialect::parse(&format!("EXECUTE x {arguments}"));
                match parsed.ok().and_then(|mut parsed| parsed.pop()).map(|parsed| parsed.statement) {
                    Some(Statement::Execute { arguments, .. }) => Statement::Execute { name, arguments },
                    other => unreachable!("{other:?}"),
                }
            })
            .boxed(),
        option::of(ident()).prop_map(Statement::Deallocate).boxed(),
        ident().prop_map(Statement::Listen).boxed(),
        option::of(ident()).prop_map(Statement::Unlisten).boxed(),
        (ident(), option::of(text())).prop_map(|(channel, payload)| Statement::Notify { channel, payload }).boxed(),
    ]
}

fn routines() -> Vec<Any<Statement>> {
    let arguments = |(least, most): (usize, usize)| vec(literal(), least..=most);
    vec![
        (select(MetaFunction::ALL), any::<bool>(), option::of(ident()))
            .prop_flat_map(move |(function, upper, alias)| {
                let typed = if upper { function.name().to_ascii_uppercase() } else { function.name().to_owned() };
                arguments(function.arity()).prop_map(move |arguments| Statement::Function {
                    function,
                    typed: typed.clone(),
                    arguments,
                    alias: alias.clone(),
                })
            })
            .boxed(),
        text()
            .prop_map(|text| Statement::Function {
                function: MetaFunction::SetConfigParameter,
                typed: "set_config_parameter".to_owned(),
                arguments: vec![
                    Literal::Text("SomePassword".to_owned()),
                    Literal::Text(format!("{text}{SECRET_MARK}")),
                ],
                alias: None,
            })
            .boxed(),
        select(Procedure::ALL)
            .prop_flat_map(move |procedure| {
                arguments(procedure.arity()).prop_map(move |arguments| Statement::Call { procedure, arguments })
            })
            .boxed(),
    ]
}

/// Statements whose printed form sqlparser reads back.
fn sql() -> Vec<Any<Statement>> {
    let texts = [
        "SELECT 1",
        "SELECT a, \"B\", 'it''s' FROM v_catalog.nodes WHERE a = 1 ORDER BY a LIMIT 5",
        "WITH a AS (SELECT 1) SELECT * FROM a UNION ALL SELECT 2",
        "VALUES (1, 'a'), (2, 'b')",
        "CREATE TABLE t (a INT)",
        "EXPLAIN SELECT count(*) FROM t GROUP BY a HAVING count(*) > 1",
    ];
    let parsed = |text: &str| switchyard_dialect::parse(text).ok().and_then(|mut parsed| parsed.pop());
    let statements: Vec<Statement> =
        texts.iter().filter_map(|text| parsed(text)).map(|parsed| parsed.statement).collect();
    assert_eq!(statements.len(), texts.len());
    vec![select(statements).boxed()]
}

/// Any statement.
pub fn statement() -> Any<Statement> {
    let all = [
        addresses(),
        groups(),
        rules(),
        grants(),
        users(),
        authentications(),
        mappings(),
        topology(),
        sessions(),
        session_objects(),
        routines(),
        sql(),
    ];
    Union::new(all.into_iter().flatten()).prop_map(covered).boxed()
}

/// A new kind of statement does not compile before it is thought of here, and then above.
fn covered(statement: Statement) -> Statement {
    use Statement as S;
    match &statement {
        S::CreateNetworkAddress { .. } | S::AlterNetworkAddress { .. } | S::DropNetworkAddress { .. } => {}
        S::CreateNetworkInterface { .. } | S::AlterNetworkInterface { .. } | S::DropNetworkInterface { .. } => {}
        S::CreateSubnet { .. } | S::AlterSubnet { .. } | S::DropSubnet { .. } => {}
        S::CreateLoadBalanceGroup { .. } | S::AlterLoadBalanceGroup { .. } | S::DropLoadBalanceGroup { .. } => {}
        S::CreateRoutingRule { .. } | S::CreateWorkloadRule { .. } => {}
        S::AlterRoutingRule { .. } | S::DropRoutingRule { .. } => {}
        S::GrantWorkload { .. } | S::RevokeWorkload { .. } | S::GrantRole { .. } | S::RevokeRole { .. } => {}
        S::SetSessionWorkload(_) | S::SetRole(_) | S::Show(_) | S::AlterSession(_) | S::Set { .. } => {}
        S::CreateUser { .. } | S::AlterUser { .. } | S::DropUser { .. } => {}
        S::CreateRole { .. } | S::AlterRole { .. } | S::DropRole { .. } => {}
        S::CreateAuthentication { .. } | S::AlterAuthentication { .. } | S::DropAuthentication { .. } => {}
        S::GrantAuthentication { .. } | S::RevokeAuthentication { .. } => {}
        S::CreateUserMapping { .. } | S::AlterUserMapping { .. } | S::DropUserMapping { .. } => {}
        S::Function { .. } | S::Call { .. } | S::AlterDatabase { .. } | S::RestoreCatalog { .. } | S::Sql(_) => {}
        S::AlterNode { .. } | S::CreateNode { .. } | S::DropNode { .. } => {}
        S::CreateFaultGroup { .. } | S::AlterFaultGroup { .. } | S::DropFaultGroup { .. } => {}
        S::CreateSubcluster { .. } | S::AlterSubcluster { .. } | S::DropSubcluster { .. } => {}
        S::SetTransaction { .. } | S::Reset(_) | S::Discard(_) | S::Begin { .. } | S::Commit | S::Rollback => {}
        S::Savepoint(_) | S::ReleaseSavepoint(_) | S::RollbackTo(_) => {}
        S::DeclareCursor { .. } | S::FetchCursor { .. } | S::CloseCursor(_) => {}
        S::Prepare { .. } | S::Execute { .. } | S::Deallocate(_) => {}
        S::Listen(_) | S::Unlisten(_) | S::Notify { .. } => {}
    }
    statement
}
