//! Statements that a client prepared, and the values it binds to them.

use std::sync::Arc;

use switchyard_dialect::{Literal, Parsed, Statement, SyntaxError};
use switchyard_engine::{ClientError, Described, PgType, Scalar, SqlState};
use switchyard_wire::frontend::Bind;

use super::copy::Copy;
use crate::encode::{FieldFormat, kind_of, parameter};
use crate::error::aborted;
use crate::session::{Session, ends_failed_transaction};

/// A statement that a client prepared.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) source: Arc<str>,
    /// Absent for a statement of our own with `$1`, which is read when the values are known.
    parsed: Option<Arc<Parsed>>,
    pub(crate) described: Described,
    /// Whether it may run in a transaction that failed.
    pub(crate) ends_transaction: bool,
}

impl Prepared {
    /// Reads and describes a statement; none when the text has none. `types` are those the client knows.
    pub(crate) async fn read(session: &mut Session, text: &str, types: &[u32]) -> Result<Option<Self>, ClientError> {
        let mut statements = read_text(text)?;
        if statements.len() > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(ClientError::new(SqlState::SyntaxError, message));
        }
        let Some(parsed) = statements.pop() else { return Ok(None) };
        let ends_transaction = ends_failed_transaction(&parsed.statement);
        if session.failed() && !ends_transaction {
            return Err(aborted());
        }
        let template = match parsed.statement {
            Statement::Sql(_) => 0,
            _ => switchyard_dialect::parameter_count(text).unwrap_or_default(),
        };
        let declared: Vec<Option<PgType>> = types.iter().map(|own| kind_of(*own)).collect();
        let copy = Copy::of(&parsed)?;
        let read = copy.as_ref().map_or(&parsed.statement, |copy| &copy.query.statement);
        let mut described = session.describe(text, read, &declared).await?;
        if copy.is_some() {
            // What it sends are no rows of a result.
            described.columns.clear();
        }
        if template > 0 {
            let kind = |index| declared.get(index).copied().flatten().unwrap_or(PgType::Text);
            described.parameters = (0..template).map(kind).collect();
        }
        let parsed = (template == 0).then(|| Arc::new(parsed));
        Ok(Some(Self { source: text.into(), parsed, described, ends_transaction }))
    }

    /// The statement with its values in it.
    pub(crate) fn bound(&self, values: &[Scalar]) -> Result<Arc<Parsed>, ClientError> {
        if let Some(parsed) = &self.parsed {
            return Ok(Arc::clone(parsed));
        }
        let literals = values.iter().map(literal).collect::<Result<Vec<_>, _>>()?;
        let text = switchyard_dialect::bind(&self.source, &literals)?;
        let parsed = switchyard_dialect::parse(&text)?.pop();
        parsed.map(Arc::new).ok_or_else(|| ClientError::new(SqlState::SyntaxError, "the statement is empty"))
    }

    /// The values of a Bind message.
    pub(crate) fn values(&self, bind: &Bind<'_>, name: &str) -> Result<Vec<Scalar>, ClientError> {
        let kinds = &self.described.parameters;
        check_count(bind, name, kinds.len())?;
        let read = |(index, (bytes, kind)): (usize, (&Option<&[u8]>, &PgType))| {
            parameter(*bytes, *kind, format_of(&bind.parameter_formats, index)?)
        };
        bind.parameters.iter().zip(kinds).enumerate().map(read).collect()
    }

    /// The formats of the columns, as a Bind message wants them.
    pub(crate) fn formats(&self, codes: &[i16]) -> Result<Vec<FieldFormat>, ClientError> {
        let columns = self.described.columns.len();
        if columns > 0 && codes.len() > 1 && codes.len() != columns {
            let message = format!("bind message has {} result formats but query has {columns} columns", codes.len());
            return Err(ClientError::new(SqlState::ProtocolViolation, message));
        }
        (0..columns).map(|index| format_of(codes, index)).collect()
    }
}

/// Checks how many parameters and formats came with a Bind message.
pub(crate) fn check_count(bind: &Bind<'_>, name: &str, wanted: usize) -> Result<(), ClientError> {
    let violation = |message| Err(ClientError::new(SqlState::ProtocolViolation, message));
    let (formats, given) = (bind.parameter_formats.len(), bind.parameters.len());
    if formats > 1 && formats != given {
        return violation(format!("bind message has {formats} parameter formats but {given} parameters"));
    }
    if given != wanted {
        return violation(format!(
            "bind message supplies {given} parameters, but prepared statement \"{name}\" requires {wanted}"
        ));
    }
    Ok(())
}

/// The format at a place in a list of none, one for all, or one for each.
fn format_of(codes: &[i16], index: usize) -> Result<FieldFormat, ClientError> {
    let code = match codes {
        [] => 0,
        [code] => *code,
        codes => codes.get(index).copied().unwrap_or_default(),
    };
    match code {
        0 => Ok(FieldFormat::Text),
        1 => Ok(FieldFormat::Binary),
        other => Err(ClientError::new(SqlState::ProtocolViolation, format!("unsupported format code: {other}"))),
    }
}

/// Reads a statement to be prepared; for one of our own with parameters, as if they were all NULL.
fn read_text(sql: &str) -> Result<Vec<Parsed>, SyntaxError> {
    let plain = switchyard_dialect::parse(sql);
    match switchyard_dialect::parameter_count(sql) {
        Ok(count @ 1..) => {
            let nothing = vec![Literal::Null; count];
            let ours = switchyard_dialect::bind(sql, &nothing).and_then(|bound| switchyard_dialect::parse(&bound));
            match ours {
                Ok(statements) if !statements.iter().any(|one| matches!(one.statement, Statement::Sql(_))) => {
                    Ok(statements)
                }
                _ => plain,
            }
        }
        _ => plain,
    }
}

/// A parameter as a literal of our own statements.
fn literal(value: &Scalar) -> Result<Literal, ClientError> {
    Ok(match value {
        Scalar::Null => Literal::Null,
        Scalar::Bool(value) => Literal::Bool(*value),
        Scalar::Int(value) => Literal::Number(value.to_string()),
        Scalar::Float4(value) => Literal::Number(value.to_string()),
        Scalar::Float8(value) => Literal::Number(value.to_string()),
        Scalar::Text(value) => Literal::Text(value.clone()),
        _ => {
            let message = "parameters of this type are not taken by management statements";
            return Err(ClientError::new(SqlState::FeatureNotSupported, message));
        }
    })
}
