//! Parameters of a known type: what is done with one depends on its type, as with a value that is cast. Texts stay as
//! they are, since a text without a type is read as what it is needed for.

use std::ops::ControlFlow;

use sqlparser::ast::{
    CastKind, DataType, ExactNumberInfo, Expr, Fetch, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    LimitClause, ObjectName, Query, Statement, TableFactor, Value, VisitMut, VisitorMut,
};

use super::SET_FUNCTIONS;
use super::cells::PgType;
use super::guard::last_part;

/// Casts the parameters whose types are known, from `$1` on. Numbers of rows, and what functions in FROM are given, are
/// values themselves.
pub(super) fn cast_parameters(statement: &mut Statement, kinds: &[Option<PgType>]) {
    if kinds.iter().flatten().any(|kind| sql_type(*kind).is_some()) {
        let mut caster = Caster { kinds, limits: Vec::new(), arguments: Vec::new() };
        let _: ControlFlow<()> = VisitMut::visit(statement, &mut caster);
    }
}

struct Caster<'a> {
    kinds: &'a [Option<PgType>],
    /// What is put aside while the queries around are visited.
    limits: Vec<(Option<LimitClause>, Option<Fetch>)>,
    arguments: Vec<Vec<FunctionArg>>,
}

impl VisitorMut for Caster<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.limits.push((query.limit_clause.take(), query.fetch.take()));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        (query.limit_clause, query.fetch) = self.limits.pop().unwrap_or_default();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let Some(arguments) = arguments_of(factor) {
            self.arguments.push(std::mem::take(arguments));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let Some(arguments) = arguments_of(factor) {
            *arguments = self.arguments.pop().unwrap_or_default();
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        match expression {
            Expr::Function(function) => widened(function),
            Expr::Substring { substring_from, substring_for, .. } => {
                substring_from.iter_mut().chain(substring_for).for_each(|place| widen(place));
            }
            _ => {}
        }
        let Expr::Value(value) = expression else { return ControlFlow::Continue(()) };
        let Value::Placeholder(name) = &value.value else { return ControlFlow::Continue(()) };
        let number = name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
        let kind = number.and_then(|number| self.kinds.get(number.checked_sub(1)?).copied().flatten());
        if let Some(data_type) = kind.and_then(sql_type) {
            let parameter = Box::new(std::mem::replace(expression, Expr::value(Value::Null)));
            let kind = CastKind::DoubleColon;
            *expression = Expr::Cast { kind, expr: parameter, data_type, array: false, format: None };
        }
        ControlFlow::Continue(())
    }
}

/// The arguments of a function that takes nothing but values.
fn arguments_of(factor: &mut TableFactor) -> Option<&mut Vec<FunctionArg>> {
    let (name, arguments) = match factor {
        TableFactor::Table { name, args: Some(arguments), .. } => (name, &mut arguments.args),
        TableFactor::Function { name, args, .. } => (name, args),
        _ => return None,
    };
    let name = last_part(name)?;
    SET_FUNCTIONS.iter().any(|function| function.name.eq_ignore_ascii_case(name)).then_some(arguments)
}

/// A function of integers takes a smallint too, which drivers choose by the value.
fn widened(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    for argument in &mut list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = argument {
            widen(value);
        }
    }
}

fn widen(value: &mut Expr) {
    if let Expr::Cast { expr, data_type, .. } = value
        && matches!(expr.as_ref(), Expr::Value(_))
        && data_type.to_string() == "int2"
    {
        *data_type = DataType::Integer(None);
    }
}

/// A type in a cast; none where a value of it is no different from a text that was not cast.
fn sql_type(kind: PgType) -> Option<DataType> {
    let name = match kind {
        PgType::Date => return Some(DataType::Date),
        PgType::Numeric => return Some(DataType::Numeric(ExactNumberInfo::None)),
        PgType::Bool => "bool",
        PgType::Int2 => "int2",
        PgType::Int4 => "int4",
        PgType::Int8 => "int8",
        PgType::Float4 => "float4",
        PgType::Float8 => "float8",
        PgType::Bytea => "bytea",
        PgType::Timestamp => "timestamp",
        PgType::Timestamptz => "timestamptz",
        PgType::Time => "time",
        PgType::Interval => "interval",
        PgType::Inet => "inet",
        PgType::Cidr => "cidr",
        PgType::Json => "json",
        PgType::Jsonb => "jsonb",
        PgType::BoolArray => "bool[]",
        PgType::Int2Array => "int2[]",
        PgType::Int4Array => "int4[]",
        PgType::Int8Array => "int8[]",
        PgType::Float4Array => "float4[]",
        PgType::Float8Array => "float8[]",
        _ => return None,
    };
    Some(DataType::Custom(ObjectName::from(vec![Ident::new(name)]), Vec::new()))
}
