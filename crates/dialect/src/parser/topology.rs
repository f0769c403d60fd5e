//! Databases, nodes, subclusters, fault groups and their parameters (`reference/vertica-sql.md` §5.5, §6).

use super::address;
use super::cursor::{Cursor, Result};
use super::lexer::Kind;
use crate::ast::{
    Assignment, DatabaseAction, FaultGroupAction, Ident, NodeAction, NodeType, OrDefault, ParameterAction, SecretText,
    Selection, Statement, SubclusterAction, Value,
};

/// After ALTER DATABASE.
pub(super) fn alter_database(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let database = or_default(cursor)?;
    let action = if cursor.accept("EXPORT") {
        cursor.expect("ON")?;
        DatabaseAction::ExportOn(or_default(cursor)?)
    } else if cursor.accept("DROP") {
        cursor.expect_all(&["ALL", "FAULT", "GROUP"])?;
        DatabaseAction::DropAllFaultGroups
    } else if cursor.accept("RESET") {
        if cursor.accept("STANDBY") {
            DatabaseAction::ResetStandby
        } else if cursor.accept("ALL") {
            DatabaseAction::Reset(Selection::All)
        } else {
            DatabaseAction::Reset(Selection::Named(vec![parameter(cursor)?]))
        }
    } else if let Some(action) = setting(cursor)? {
        DatabaseAction::Parameter(action)
    } else {
        return Err(cursor.error());
    };
    Ok(Statement::AlterDatabase { database, action })
}

/// A name, or DEFAULT.
pub(super) fn or_default(cursor: &mut Cursor<'_>) -> Result<OrDefault> {
    if cursor.accept("DEFAULT") { Ok(OrDefault::Default) } else { Ok(OrDefault::Named(cursor.name()?)) }
}

/// `SET [PARAMETER] p = v, ...` or `CLEAR [PARAMETER] p, ...`, if one of them is there.
pub(super) fn setting(cursor: &mut Cursor<'_>) -> Result<Option<ParameterAction>> {
    if cursor.accept("SET") {
        // A parameter may be called "parameter".
        if cursor.kind_ahead(1) != Kind::Symbol && !cursor.at_ahead(1, "TO") {
            cursor.accept("PARAMETER");
        }
        return set(cursor).map(Some);
    }
    if cursor.accept("CLEAR") {
        if matches!(cursor.kind_ahead(1), Kind::Word | Kind::Quoted) {
            cursor.accept("PARAMETER");
        }
        return Ok(Some(ParameterAction::Clear(cursor.list(parameter)?)));
    }
    Ok(None)
}

/// The assignments; PostgreSQL's `SET p TO DEFAULT`, alone, clears.
fn set(cursor: &mut Cursor<'_>) -> Result<ParameterAction> {
    let mut assignments = Vec::new();
    loop {
        let name = parameter(cursor)?;
        if !cursor.accept_symbol('=') {
            cursor.expect("TO")?;
        }
        if assignments.is_empty() && cursor.accept("DEFAULT") {
            return Ok(ParameterAction::Clear(vec![name]));
        }
        assignments.push(Assignment { name, value: value(cursor)? });
        if !cursor.accept_symbol(',') {
            return Ok(ParameterAction::Set(assignments));
        }
    }
}

/// The name of a parameter: `a`, `a.b`. A quoted one may be anything.
pub(super) fn parameter(cursor: &mut Cursor<'_>) -> Result<Ident> {
    let mut name = cursor.name()?;
    while cursor.accept_symbol('.') {
        name.0.push('.');
        name.0.push_str(&cursor.any_name()?.0);
    }
    Ok(name)
}

/// `'text'`, a number or a word; the vendor documents `= any`, so reserved words too, but not DEFAULT.
pub(super) fn value(cursor: &mut Cursor<'_>) -> Result<Value> {
    if cursor.at_string() {
        return Ok(Value::Text(cursor.string()?));
    }
    if let Some(number) = cursor.signed_number()? {
        return Ok(Value::Number(number));
    }
    if cursor.at("DEFAULT") {
        return Err(cursor.error());
    }
    Ok(Value::Word(cursor.any_name()?.0))
}

/// `ALL`, or parameters.
pub(super) fn selection(cursor: &mut Cursor<'_>) -> Result<Selection> {
    if cursor.accept("ALL") { Ok(Selection::All) } else { Ok(Selection::Named(cursor.list(parameter)?)) }
}

/// After CREATE NODE.
pub(super) fn create_node(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = cursor.name()?;
    cursor.accept("WITH");
    let host = cursor.string()?;
    let port = address::port(cursor)?;
    let subcluster = if cursor.accept("SUBCLUSTER") { Some(cursor.name()?) } else { None };
    Ok(Statement::CreateNode { name, host, port, subcluster })
}

/// After ALTER NODE.
pub(super) fn alter_node(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = cursor.name()?;
    let action = node_action(cursor)?;
    Ok(Statement::AlterNode { name, action })
}

fn node_action(cursor: &mut Cursor<'_>) -> Result<NodeAction> {
    if cursor.accept("EXPORT") {
        cursor.expect("ON")?;
        return Ok(NodeAction::ExportOn(or_default(cursor)?));
    }
    if cursor.accept("REPLACE") {
        let with = if cursor.accept("WITH") { Some(cursor.name()?) } else { None };
        return Ok(NodeAction::Replace(with));
    }
    if cursor.accept("RESET") {
        return Ok(NodeAction::Reset);
    }
    if cursor.accept("RENAME") {
        cursor.expect("TO")?;
        return Ok(NodeAction::Rename(cursor.name()?));
    }
    if cursor.accept("DRAIN") {
        let within = if cursor.accept("WITHIN") { Some(cursor.string()?) } else { None };
        let then_close = within.is_some() && cursor.accept("THEN");
        if then_close {
            cursor.expect("CLOSE")?;
        }
        return Ok(NodeAction::Drain { within, then_close });
    }
    if cursor.accept("CANCEL") {
        cursor.expect("DRAIN")?;
        return Ok(NodeAction::CancelDrain);
    }
    if cursor.accept_all(&["SET", "ADDRESS", "TO"]) {
        return Ok(NodeAction::Address { host: cursor.string()?, port: address::port(cursor)? });
    }
    if cursor.accept_all(&["SET", "UPSTREAM", "TO"]) {
        let none = cursor.accept("NONE");
        return Ok(NodeAction::Upstream(if none { None } else { Some(SecretText::new(cursor.string()?)) }));
    }
    if let Some(action) = setting(cursor)? {
        return Ok(NodeAction::Parameter(action));
    }
    node_type(cursor)
}

fn node_type(cursor: &mut Cursor<'_>) -> Result<NodeAction> {
    cursor.accept("IS");
    let node_type = if cursor.accept("PERMANENT") {
        NodeType::Permanent
    } else if cursor.accept("EPHEMERAL") {
        NodeType::Ephemeral
    } else if cursor.accept("STANDBY") {
        NodeType::Standby
    } else {
        cursor.expect("EXECUTE")?;
        NodeType::Execute
    };
    Ok(NodeAction::Type(node_type))
}

/// After DROP NODE.
pub(super) fn drop_node(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let if_exists = cursor.if_exists()?;
    Ok(Statement::DropNode { if_exists, name: cursor.name()?, cascade: cursor.accept("CASCADE") })
}

/// After CREATE SUBCLUSTER.
pub(super) fn create_subcluster(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = cursor.name()?;
    let primary = if cursor.accept("PRIMARY") {
        Some(true)
    } else if cursor.accept("SECONDARY") {
        Some(false)
    } else {
        None
    };
    Ok(Statement::CreateSubcluster { name, primary })
}

/// After ALTER SUBCLUSTER.
pub(super) fn alter_subcluster(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = cursor.name()?;
    let action = if cursor.accept("RENAME") {
        cursor.expect("TO")?;
        SubclusterAction::Rename(cursor.name()?)
    } else if cursor.accept("SET") {
        cursor.expect("DEFAULT")?;
        SubclusterAction::SetDefault
    } else if cursor.accept("ADD") {
        cursor.expect("NODE")?;
        SubclusterAction::AddNodes(cursor.names()?)
    } else {
        cursor.expect_all(&["DROP", "NODE"])?;
        SubclusterAction::DropNodes(cursor.names()?)
    };
    Ok(Statement::AlterSubcluster { name, action })
}

/// After DROP SUBCLUSTER.
pub(super) fn drop_subcluster(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let if_exists = cursor.if_exists()?;
    Ok(Statement::DropSubcluster { if_exists, name: cursor.name()?, cascade: cursor.accept("CASCADE") })
}

/// After CREATE FAULT GROUP.
pub(super) fn create_fault_group(cursor: &mut Cursor<'_>) -> Result<Statement> {
    Ok(Statement::CreateFaultGroup { name: cursor.name()? })
}

/// After ALTER FAULT GROUP.
pub(super) fn alter_fault_group(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = cursor.name()?;
    if cursor.accept("RENAME") {
        cursor.expect("TO")?;
        return Ok(Statement::AlterFaultGroup { name, action: FaultGroupAction::Rename(cursor.name()?) });
    }
    let add = cursor.accept("ADD");
    if !add {
        cursor.expect("DROP")?;
    }
    let node = cursor.accept("NODE");
    if !node {
        cursor.expect_all(&["FAULT", "GROUP"])?;
    }
    let member = cursor.name()?;
    let action = match (add, node) {
        (true, true) => FaultGroupAction::AddNode(member),
        (true, false) => FaultGroupAction::AddChild(member),
        (false, true) => FaultGroupAction::DropNode(member),
        (false, false) => FaultGroupAction::DropChild(member),
    };
    Ok(Statement::AlterFaultGroup { name, action })
}

/// After DROP FAULT GROUP.
pub(super) fn drop_fault_group(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let if_exists = cursor.if_exists()?;
    Ok(Statement::DropFaultGroup { if_exists, name: cursor.name()? })
}
