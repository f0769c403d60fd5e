//! Statements that a client prepared, and the values it binds to them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sqlparser::ast::Expr;
use switchyard_dialect::{Literal, Parsed, Redacted, Statement};
use switchyard_engine::{ClientError, Described, Parameter, PgType, Scalar, SqlState};
use switchyard_wire::frontend::Bind;

use super::copy::Copy;
use crate::encode::{FieldFormat, kind_of, parameter, pg_type};
use crate::encoding::Encoding;
use crate::error::aborted;
use crate::live::now_us;
use crate::session::{Session, ends_failed_transaction};

/// A statement that a client prepared.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The text that errors point into.
    pub(crate) source: Arc<str>,
    /// The statement, secrets redacted.
    pub(crate) shown: Arc<str>,
    pub(crate) created_us: i64,
    /// Whether PREPARE made it.
    pub(crate) from_sql: bool,
    pub(crate) executions: AtomicU64,
    /// Absent for a statement of our own with `$1`, which is read when the values are known.
    parsed: Option<Arc<Parsed>>,
    pub(crate) described: Described,
    /// Its first word, in capitals.
    pub(crate) verb: String,
    /// Whether it may run in a transaction that failed.
    pub(crate) ends_transaction: bool,
}

impl Prepared {
    /// Reads and describes a statement; none when the text has none. `types` are those the client knows.
    pub(crate) async fn read(session: &mut Session, text: &str, types: &[u32]) -> Result<Option<Self>, ClientError> {
        let limits = session.parse_limits();
        let (source, statements) = session.console.texts.read_template(text, limits)?;
        if statements.len() > 1 {
            let message = if session.speaks_vertica() {
                "Cannot insert multiple commands into a prepared statement"
            } else {
                "cannot insert multiple commands into a prepared statement"
            };
            return Err(ClientError::new(SqlState::SyntaxError, message));
        }
        let Some(parsed) = statements.first().map(Arc::clone) else { return Ok(None) };
        let ends_transaction = ends_failed_transaction(&parsed.statement);
        if session.failed() && !ends_transaction {
            return Err(aborted());
        }
        let template = match parsed.statement.takes_values() {
            true => 0,
            false => switchyard_dialect::parameter_count(text).unwrap_or_default(),
        };
        let declared: Vec<Option<PgType>> = types.iter().map(|own| kind_of(*own)).collect();
        let mut described = describe(session, text, &parsed, &declared).await?;
        if template > 0 {
            let kind = |index| declared.get(index).copied().flatten().unwrap_or(PgType::Text);
            described.parameters = (0..template).map(kind).collect();
        }
        Ok(Some(Self {
            source,
            shown: Redacted(&parsed.statement).to_string().into(),
            created_us: now_us(),
            from_sql: false,
            executions: AtomicU64::new(0),
            verb: verb(&parsed.text),
            parsed: (template == 0).then_some(parsed),
            described,
            ends_transaction,
        }))
    }

    /// The same, made by this PREPARE.
    pub(crate) fn by_prepare(self, shown: String) -> Self {
        Self { shown: shown.into(), from_sql: true, ..self }
    }

    /// The statement as it was prepared, if it takes no values of its own.
    pub(crate) fn statement(&self) -> Option<&Statement> {
        self.parsed.as_ref().map(|parsed| &parsed.statement)
    }

    /// The statement with its values in it.
    pub(crate) fn bound(&self, values: &[Parameter]) -> Result<Arc<Parsed>, ClientError> {
        if let Some(parsed) = &self.parsed {
            return Ok(Arc::clone(parsed));
        }
        let literals = values.iter().map(|parameter| literal(&parameter.value)).collect::<Result<Vec<_>, _>>()?;
        let text = switchyard_dialect::bind(&self.source, &literals)?;
        let parsed = switchyard_dialect::parse(&text)?.pop();
        parsed.map(Arc::new).ok_or_else(|| ClientError::new(SqlState::SyntaxError, "the statement is empty"))
    }

    /// The values of a Bind message.
    pub(crate) fn values(
        &self,
        bind: &Bind<'_>,
        name: &str,
        encoding: Encoding,
    ) -> Result<Vec<Parameter>, ClientError> {
        let kinds = &self.described.parameters;
        check_count(bind, name, kinds.len())?;
        let read = |(index, (bytes, kind)): (usize, (&Option<&[u8]>, &PgType))| {
            parameter(*bytes, *kind, format_of(&bind.parameter_formats, index)?, encoding)
        };
        let values = bind.parameters.iter().zip(kinds).enumerate().map(read).collect::<Result<_, ClientError>>()?;
        Ok(self.typed(values))
    }

    /// Values with the types of the parameters.
    pub(crate) fn typed(&self, values: Vec<Scalar>) -> Vec<Parameter> {
        let kinds = self.described.parameters.iter().copied();
        values.into_iter().zip(kinds).map(|(value, kind)| Parameter { value, kind }).collect()
    }

    /// The formats of so many columns, as a Bind message wants them.
    pub(crate) fn formats(codes: &[i16], columns: usize) -> Result<Vec<FieldFormat>, ClientError> {
        if columns > 0 && codes.len() > 1 && codes.len() != columns {
            let message = format!("bind message has {} result formats but query has {columns} columns", codes.len());
            return Err(ClientError::new(SqlState::ProtocolViolation, message));
        }
        (0..columns).map(|index| format_of(codes, index)).collect()
    }
}

/// The first word of a statement, in capitals; what begins with none is a query in parentheses.
fn verb(text: &str) -> String {
    let word = text.split(|character: char| !character.is_ascii_alphabetic()).next().unwrap_or_default();
    if word.is_empty() { "SELECT".to_owned() } else { word.to_ascii_uppercase() }
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

/// What a statement takes and gives. What another statement of the session gives is not known here.
async fn describe(
    session: &mut Session,
    text: &str,
    parsed: &Parsed,
    declared: &[Option<PgType>],
) -> Result<Described, ClientError> {
    let inner = match &parsed.statement {
        Statement::DeclareCursor { query, .. } => Some(Statement::Sql(query.clone())),
        Statement::Execute { arguments, .. } => values_query(arguments, &[])?,
        _ => Copy::of(parsed)?.map(|copy| copy.query.statement),
    };
    let Some(inner) = inner else { return session.describe(text, &parsed.statement, declared).await };
    // What it reads are no rows of its result.
    Ok(Described { columns: Arc::default(), ..session.describe(text, &inner, declared).await? })
}

/// The query that computes the arguments of EXECUTE, as the types that are known of them.
pub(crate) fn values_query(arguments: &[Expr], kinds: &[PgType]) -> Result<Option<Statement>, ClientError> {
    if arguments.is_empty() {
        return Ok(None);
    }
    let cast = |(index, argument): (usize, &Expr)| match kinds.get(index).copied().map(cast_name) {
        Some(kind) => format!("CAST(({argument}) AS {kind})"),
        None => argument.to_string(),
    };
    let arguments: Vec<String> = arguments.iter().enumerate().map(cast).collect();
    let parsed = switchyard_dialect::parse(&format!("SELECT {}", arguments.join(", ")))?.pop();
    Ok(parsed.map(|parsed| parsed.statement))
}

/// The type as a cast names it.
fn cast_name(kind: PgType) -> String {
    match kind {
        // What only PostgreSQL's own catalog has is given as text.
        PgType::Name | PgType::Char | PgType::Json | PgType::Jsonb => "text".to_owned(),
        PgType::NameArray | PgType::CharArray => "text[]".to_owned(),
        PgType::Int2Vector => "int2[]".to_owned(),
        PgType::OidVector => "oid[]".to_owned(),
        kind => {
            let kind = pg_type(kind).0;
            match kind.name().strip_prefix('_') {
                Some(item) => format!("{item}[]"),
                None => kind.name().to_owned(),
            }
        }
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
