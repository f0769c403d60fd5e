//! Rows as values, `(a, b)` and `ROW(a, b)`: DataFusion takes them for structures, which compare and print otherwise. What
//! can be said of their fields one by one is; the rest is refused.

use sqlparser::ast::{BinaryOperator, CastKind, DataType, Expr, GroupByExpr, Select, UnaryOperator, Value, Values};

use super::error::QueryError;
use super::guard::{last_part, plain_arguments};
use crate::error::SqlState;

type Result<T> = std::result::Result<T, QueryError>;

/// Rewrites one expression; those within it come by themselves.
pub(super) fn rewrite(expression: &mut Expr) -> Result<()> {
    let replaced = match &*expression {
        Expr::BinaryOp { left, op, right } => match (fields(left), fields(right)) {
            (Some(left), Some(right)) => Some(compared(left, op, right)?),
            _ => None,
        },
        Expr::InList { expr, list, negated } => match fields(expr) {
            Some(row) => Some(listed(&row, list, *negated)?),
            None => None,
        },
        Expr::IsNull(row) => fields(row).map(|fields| all(fields, |field| Expr::IsNull(Box::new(field)))),
        Expr::IsNotNull(row) => fields(row).map(|fields| all(fields, |field| Expr::IsNotNull(Box::new(field)))),
        Expr::IsDistinctFrom(left, right) => distinct(left, right)?,
        Expr::IsNotDistinctFrom(left, right) => distinct(left, right)?.map(not),
        other => match fields(other) {
            Some(_) => return Err(unsupported("a row as a value")),
            None => None,
        },
    };
    if let Some(replaced) = replaced {
        *expression = replaced;
    }
    Ok(())
}

/// `GROUP BY (a, b)` groups by both.
pub(super) fn spread_groups(select: &mut Select) {
    if let GroupByExpr::Expressions(expressions, _) = &mut select.group_by {
        let spread = std::mem::take(expressions).into_iter().flat_map(|expression| match expression {
            Expr::Tuple(fields) => fields,
            other => vec![other],
        });
        *expressions = spread.collect();
    }
}

/// Literals in a column of VALUES become what the others of that column are cast to, if they are all cast to one type.
pub(super) fn cast_alike(values: &mut Values) {
    let width = values.rows.first().map_or(0, |row| row.content.len());
    for place in 0..width {
        let kinds = values.rows.iter().filter_map(|row| row.content.get(place).and_then(written_type));
        let Some(Some(kind)) = kinds.map(Some).reduce(|one, other| common_moment(one?, other?)) else { continue };
        for item in values.rows.iter_mut().filter_map(|row| row.content.get_mut(place)) {
            let moves = written_type(item).is_some_and(|own| own != kind);
            let float = matches!(kind, DataType::DoublePrecision | DataType::Real);
            let literal = match &*item {
                Expr::Value(literal) if float && matches!(literal.value, Value::Number(..)) => &Value::Null,
                Expr::Value(literal) => &literal.value,
                _ if moves => &Value::Null,
                _ => continue,
            };
            if matches!(literal, Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_) | Value::Null) {
                let expr = Box::new(std::mem::replace(item, Expr::value(Value::Null)));
                let kind = kind.clone();
                *item = Expr::Cast { kind: CastKind::DoubleColon, expr, data_type: kind, array: false, format: None };
            }
        }
    }
}

/// The type that an expression names itself.
fn written_type(expression: &Expr) -> Option<DataType> {
    match expression {
        Expr::Cast { data_type, .. } => Some(data_type.clone()),
        Expr::TypedString(typed) => Some(typed.data_type.clone()),
        Expr::Value(value) if matches!(value.value, Value::Boolean(_)) => Some(DataType::Boolean),
        _ => None,
    }
}

/// What two types are cast to, where they are one or both are of moments.
fn common_moment(one: DataType, other: DataType) -> Option<DataType> {
    let rank = |kind: &DataType| match kind.to_string().to_lowercase().as_str() {
        "date" => Some(0),
        "timestamp" | "timestamp without time zone" => Some(1),
        "timestamptz" | "timestamp with time zone" => Some(2),
        _ => None,
    };
    if one == other {
        return Some(one);
    }
    Some(if rank(&one)? < rank(&other)? { other } else { one })
}

fn unsupported(what: &str) -> QueryError {
    QueryError::new(SqlState::FeatureNotSupported, format!("{what} is not supported"))
        .hinting("Name its fields one by one.")
}

fn fields(expression: &Expr) -> Option<Vec<Expr>> {
    match expression {
        Expr::Nested(inner) => fields(inner),
        Expr::Tuple(fields) => Some(fields.clone()),
        Expr::Function(function) if last_part(&function.name).is_some_and(|name| name.eq_ignore_ascii_case("row")) => {
            plain_arguments(function)
        }
        _ => None,
    }
}

fn nested(expression: Expr) -> Expr {
    Expr::Nested(Box::new(expression))
}

fn not(expression: Expr) -> Expr {
    Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(nested(expression)) }
}

fn joined(parts: impl IntoIterator<Item = Expr>, op: BinaryOperator) -> Option<Expr> {
    let both =
        |left: Expr, right: Expr| Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) };
    parts.into_iter().reduce(both).map(nested)
}

fn all(fields: Vec<Expr>, of: impl Fn(Expr) -> Expr) -> Expr {
    let parts = fields.into_iter().map(|field| nested(of(nested(field))));
    joined(parts, BinaryOperator::And).unwrap_or_else(|| Expr::value(Value::Boolean(true)))
}

/// The fields of two rows of one length, pair by pair.
fn paired(left: Vec<Expr>, right: Vec<Expr>) -> Result<Vec<(Expr, Expr)>> {
    if left.len() != right.len() {
        return Err(QueryError::new(SqlState::SyntaxError, "unequal number of entries in row expressions"));
    }
    if left.is_empty() {
        return Err(QueryError::new(SqlState::FeatureNotSupported, "cannot compare rows of zero length"));
    }
    Ok(left.into_iter().map(nested).zip(right.into_iter().map(nested)).collect())
}

fn pair(op: BinaryOperator, (left, right): (Expr, Expr)) -> Expr {
    nested(Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) })
}

fn compared(left: Vec<Expr>, op: &BinaryOperator, right: Vec<Expr>) -> Result<Expr> {
    let strict = match op {
        BinaryOperator::Lt | BinaryOperator::LtEq => BinaryOperator::Lt,
        BinaryOperator::Gt | BinaryOperator::GtEq => BinaryOperator::Gt,
        BinaryOperator::Eq | BinaryOperator::NotEq => BinaryOperator::Eq,
        _ => return Err(unsupported("this operator between rows")),
    };
    let pairs = paired(left, right)?;
    let equal = |pairs: &[(Expr, Expr)]| -> Vec<Expr> {
        pairs.iter().cloned().map(|both| pair(BinaryOperator::Eq, both)).collect()
    };
    let whole = match op {
        BinaryOperator::Eq => joined(equal(&pairs), BinaryOperator::And),
        BinaryOperator::NotEq => joined(equal(&pairs), BinaryOperator::And).map(not),
        // The first fields that differ decide.
        _ => {
            let last = pairs.len().saturating_sub(1);
            let ways = pairs.iter().enumerate().map(|(index, both)| {
                let op = if index == last { op.clone() } else { strict.clone() };
                let mut way = equal(pairs.get(..index).unwrap_or_default());
                way.push(pair(op, both.clone()));
                joined(way, BinaryOperator::And)
            });
            joined(ways.flatten().collect::<Vec<_>>(), BinaryOperator::Or)
        }
    };
    whole.ok_or_else(|| unsupported("a row without fields"))
}

fn listed(row: &[Expr], list: &[Expr], negated: bool) -> Result<Expr> {
    let one = |item: &Expr| match fields(item) {
        Some(item) => compared(row.to_vec(), &BinaryOperator::Eq, item),
        None => Err(unsupported("a row beside what is no row")),
    };
    let any = joined(list.iter().map(one).collect::<Result<Vec<_>>>()?, BinaryOperator::Or);
    let any = any.ok_or_else(|| unsupported("an empty list"))?;
    Ok(if negated { not(any) } else { any })
}

fn distinct(left: &Expr, right: &Expr) -> Result<Option<Expr>> {
    let (Some(left), Some(right)) = (fields(left), fields(right)) else { return Ok(None) };
    let apart = |(left, right)| nested(Expr::IsDistinctFrom(Box::new(left), Box::new(right)));
    Ok(joined(paired(left, right)?.into_iter().map(apart), BinaryOperator::Or))
}
