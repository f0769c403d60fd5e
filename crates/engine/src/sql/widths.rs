//! Types of expressions as PostgreSQL has them, where DataFusion has others: an integer literal is as narrow as it can
//! be, arithmetic is checked, a literal in quotes takes the type of what it meets, casts mean what they mean there.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Between, BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, ScalarUDF, Union,
};

use super::calls;
use super::common;
use super::convert::{Convert, Place, convert, is_allowed};
use super::error::{QueryError, not_boolean};
use super::functions::arithmetic::{Arithmetic, Rounded};
use super::functions::declared;
use super::functions::networks::{ADDRESS_KEY, JSONB_KEY};
use super::functions::temporal::{
    DAYS_EARLIER, DAYS_LATER, DAYS_SINCE, DIVIDED, EARLIER, LATER, LENGTH, LONGER, SHORTER, SINCE, TIMES,
};
use super::kinds::{self, is_text, name_of, tag, timestamptz};
use super::patterns::LIKE_PATTERN;
use super::places::Subject;
use super::subquery::{nullable, refreshed};
use super::{Current, current};
use crate::error::SqlState;

pub(super) type Result<T> = std::result::Result<T, DataFusionError>;

/// Gives a plan PostgreSQL's types. It must not have been analysed yet: the analyser puts DataFusion's coercions in.
pub(super) fn apply(plan: LogicalPlan, current: &Current) -> Result<LogicalPlan> {
    // The working table of a recursive query keeps the types it was planned with.
    let recursive = plan.exists(|step| Ok(matches!(step, LogicalPlan::RecursiveQuery(_))))?;
    let typer = Typer { current, narrow: !recursive };
    let plan = plan.transform_up_with_subqueries(|step| typer.step(step))?.data;
    typer.check_literals(&plan)?;
    Ok(plan)
}

/// An operator as it is planned; none where DataFusion's own meaning is the right one.
pub(super) fn plan_operator(
    op: Operator,
    left: &Expr,
    right: &Expr,
    schema: &DFSchema,
    current: &Current,
) -> Result<Option<Expr>> {
    let placeholder = |side: &Expr| side.exists(|part| Ok(matches!(part, Expr::Placeholder(_))));
    if !is_arithmetic(op) && !is_comparison(op) && !is_logical(op) || placeholder(left)? || placeholder(right)? {
        return Ok(None);
    }
    let binary = BinaryExpr { left: Box::new(left.clone()), op, right: Box::new(right.clone()) };
    Typer { current, narrow: true }.operator(binary, schema).map(Some)
}

/// What gives expressions their types.
pub(super) struct Typer<'a> {
    pub(super) current: &'a Current,
    narrow: bool,
}

/// The type of an expression; that of an integer literal is as narrow as it will be.
pub(super) fn field_of(expression: &Expr, schema: &DFSchema) -> Result<Field> {
    match expression {
        Expr::Literal(ScalarValue::Int64(Some(value)), None) if i32::try_from(*value).is_ok() => {
            Ok(Field::new("", DataType::Int32, false))
        }
        _ => Ok(expression.to_field(schema)?.1.as_ref().clone()),
    }
}

/// Whether an expression is text in quotes without a type, which takes that of what it meets.
pub(super) fn is_unknown(expression: &Expr) -> bool {
    match expression {
        Expr::Alias(alias) => is_unknown(&alias.expr),
        Expr::Literal(ScalarValue::Utf8(Some(_)), None) => true,
        _ => false,
    }
}

pub(super) fn cast(expression: Expr, kind: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expression), kind))
}

impl Typer<'_> {
    fn step(&self, step: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        match step {
            LogicalPlan::Limit(_)
            | LogicalPlan::Explain(_)
            | LogicalPlan::RecursiveQuery(_)
            | LogicalPlan::TableScan(_) => Ok(Transformed::no(step)),
            LogicalPlan::Union(union) => {
                let inputs = common::union_inputs(union.inputs, self)?;
                Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)))
            }
            LogicalPlan::Values(values) if self.narrow => {
                let empty = DFSchema::empty();
                let rows = values.values.into_iter().map(|row| {
                    row.into_iter().map(|value| self.expression(untyped(value), &empty)).collect::<Result<Vec<_>>>()
                });
                LogicalPlanBuilder::values(rows.collect::<Result<_>>()?)?.build().map(Transformed::yes)
            }
            step => {
                let schema = merge_schema(&step.inputs());
                let names = NamePreserver::new(&step);
                let sorts = matches!(step, LogicalPlan::Sort(_));
                let mapped = step.map_expressions(|whole| {
                    let name = names.save(&whole);
                    let typed = self.expression(whole, &schema)?;
                    let typed = if sorts { self.in_order(typed, &schema)? } else { typed };
                    Ok(Transformed::yes(name.restore(typed)))
                })?;
                mapped.map_data(LogicalPlan::recompute_schema)
            }
        }
    }

    fn expression(&self, whole: Expr, schema: &DFSchema) -> Result<Expr> {
        whole.transform_up(|part| self.part(part, schema).map(Transformed::yes)).map(|done| done.data)
    }

    fn part(&self, part: Expr, schema: &DFSchema) -> Result<Expr> {
        match part {
            Expr::Literal(ScalarValue::Int64(Some(value)), None) if self.narrow => Ok(match i32::try_from(value) {
                Ok(value) => Expr::Literal(ScalarValue::Int32(Some(value)), None),
                Err(_) => Expr::Literal(ScalarValue::Int64(Some(value)), None),
            }),
            Expr::Literal(ScalarValue::UInt64(Some(value)), metadata) => {
                Ok(Expr::Literal(ScalarValue::Decimal128(Some(value.into()), 20, 0), metadata))
            }
            Expr::BinaryExpr(binary) => self.operator(binary, schema),
            Expr::ScalarSubquery(query) => Ok(Expr::ScalarSubquery(nullable(refreshed(query, schema)?)?)),
            Expr::Exists(mut exists) => {
                exists.subquery = refreshed(exists.subquery, schema)?;
                Ok(Expr::Exists(exists))
            }
            Expr::InSubquery(mut within) => {
                within.subquery = refreshed(within.subquery, schema)?;
                Ok(Expr::InSubquery(within))
            }
            Expr::Between(between) => Ok(Expr::Between(self.between(between, schema))),
            Expr::InList(mut list) => {
                let kind = field_of(&list.expr, schema).ok();
                list.list = list.list.into_iter().map(|item| self.beside(item, kind.as_ref())).collect();
                Ok(Expr::InList(list))
            }
            Expr::Like(like) => {
                // Its pattern as the client wrote it.
                let written = match like.pattern.as_ref() {
                    Expr::ScalarFunction(call) if call.func.name() == LIKE_PATTERN => call.args.first(),
                    pattern => Some(pattern),
                };
                let written = written.unwrap_or(&like.pattern);
                let (kind, pattern) = (field_of(&like.expr, schema)?, field_of(written, schema)?);
                let is_fit = |kind: &Field| is_text(kind.data_type()) || kind.data_type().is_null();
                if is_fit(&kind) && is_fit(&pattern) {
                    return Ok(Expr::Like(like));
                }
                let operator = if like.case_insensitive { "~~*" } else { "~~" };
                let negated = if like.negated { "!" } else { "" };
                let shown =
                    |side: &Expr, kind: &Field| if is_unknown(side) { "unknown".to_owned() } else { name_of(kind) };
                let (left, right) = (shown(&like.expr, &kind), shown(written, &pattern));
                Err(no_operator(&left, &format!("{negated}{operator}"), &right))
            }
            Expr::Cast(cast) => self.casted(cast, schema),
            Expr::Case(case) => common::case(case, schema, self),
            Expr::ScalarFunction(call) => calls::typed(call, schema, self),
            Expr::AggregateFunction(call) => self.aggregate(call, schema),
            Expr::WindowFunction(mut call) => {
                for sort in &mut call.params.order_by {
                    let taken = std::mem::take(&mut sort.expr);
                    sort.expr = self.in_order(taken, schema)?;
                }
                if call.fun.name() == "sum" {
                    call.params.args = wide(std::mem::take(&mut call.params.args), schema);
                }
                Ok(Expr::WindowFunction(call))
            }
            other => Ok(other),
        }
    }

    fn aggregate(&self, mut call: AggregateFunction, schema: &DFSchema) -> Result<Expr> {
        for sort in &mut call.params.order_by {
            let taken = std::mem::take(&mut sort.expr);
            sort.expr = self.in_order(taken, schema)?;
        }
        match call.func.name() {
            "sum" => call.params.args = wide(std::mem::take(&mut call.params.args), schema),
            name @ ("min" | "max") => {
                let kind = call.params.args.first().and_then(|argument| field_of(argument, schema).ok());
                if let Some(kind) = kind.filter(is_address) {
                    let message = format!("{name}({}) is not supported", name_of(&kind));
                    return Err(QueryError::new(SqlState::FeatureNotSupported, message)
                        .hinting("ORDER BY it, with LIMIT 1, gives the same.")
                        .about(Subject::Function(name.to_owned()))
                        .external());
                }
            }
            _ => {}
        }
        Ok(Expr::AggregateFunction(call))
    }

    fn between(&self, mut between: Between, schema: &DFSchema) -> Between {
        let kind = field_of(&between.expr, schema).ok();
        for bound in [&mut between.low, &mut between.high] {
            let taken = std::mem::take(bound.as_mut());
            **bound = self.beside(taken, kind.as_ref());
        }
        if kind.as_ref().is_some_and(is_address) {
            for side in [&mut between.expr, &mut between.low, &mut between.high] {
                let taken = std::mem::take(side.as_mut());
                **side = declared::call(&ADDRESS_KEY, vec![taken], self.current);
            }
        }
        between
    }

    /// A literal in quotes beside a value that is no text is read as one of the value's type.
    pub(super) fn beside(&self, expression: Expr, kind: Option<&Field>) -> Expr {
        match kind {
            Some(kind) if is_unknown(&expression) && (is_readable(kind.data_type()) || is_read_as_text(kind)) => {
                self.read(expression, kind)
            }
            _ => expression,
        }
    }

    /// What rows are sorted by: addresses do not come in the order of their texts.
    fn in_order(&self, expression: Expr, schema: &DFSchema) -> Result<Expr> {
        match field_of(&expression, schema) {
            Ok(kind) if is_address(&kind) => Ok(declared::call(&ADDRESS_KEY, vec![expression], self.current)),
            Ok(kind) if is_text(kind.data_type()) && tag(&kind) == "jsonb" => {
                Err(QueryError::new(SqlState::FeatureNotSupported, "an order of type jsonb is not supported")
                    .hinting("Cast it to text.")
                    .external())
            }
            Ok(kind) if is_text(kind.data_type()) && tag(&kind) == "json" => {
                let message = "could not identify an ordering operator for type json";
                Err(QueryError::new(SqlState::UndefinedFunction, message)
                    .hinting("Use an explicit ordering operator or modify the query.")
                    .external())
            }
            _ => Ok(expression),
        }
    }

    /// Refuses literals that are no values of the types they are read as: before anything is known of the rows, and with
    /// the place of the literal, which a value that was computed does not have.
    fn check_literals(&self, plan: &LogicalPlan) -> Result<()> {
        plan.apply_with_subqueries(|step| {
            step.apply_expressions(|whole| {
                whole.apply(|part| {
                    if let Expr::ScalarFunction(call) = part
                        && let Some(convert) = call.func.inner().downcast_ref::<Convert>()
                        && let [written] = call.args.as_slice()
                    {
                        self.readable(written, convert.to())?;
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(())
    }

    /// Whether a literal in quotes can be read as a type.
    pub(super) fn readable(&self, written: &Expr, kind: &Field) -> Result<()> {
        match written {
            Expr::Alias(alias) => self.readable(&alias.expr, kind),
            Expr::Literal(text @ ScalarValue::Utf8(Some(_)), None) => {
                let place = Place::of(&current(self.current));
                let read = convert(text, &Field::new("", DataType::Utf8, true), kind, &place);
                read.map(|_| ()).map_err(QueryError::external)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn read(&self, expression: Expr, kind: &Field) -> Expr {
        let to = kind.clone().with_name("");
        Convert::of(expression, &Field::new("", DataType::Utf8, true), &to, self.current)
    }

    fn operator(&self, binary: BinaryExpr, schema: &DFSchema) -> Result<Expr> {
        let BinaryExpr { left, op, right } = binary;
        let known = is_arithmetic(op) || is_comparison(op) || is_logical(op);
        let (Ok(left_kind), Ok(right_kind)) = (field_of(&left, schema), field_of(&right, schema)) else {
            return Ok(Expr::BinaryExpr(BinaryExpr { left, op, right }));
        };
        if !known {
            return Ok(Expr::BinaryExpr(BinaryExpr { left, op, right }));
        }
        if is_logical(op) {
            let truth = Field::new("", DataType::Boolean, true);
            let left = self.truth(*left, &left_kind, op, &truth)?;
            let right = self.truth(*right, &right_kind, op, &truth)?;
            return Ok(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }));
        }
        // What a moment is moved by is an interval.
        let moved = |kind: &Field| match kind.data_type() {
            DataType::Timestamp(..) if op == Operator::Plus => Field::new("", kinds::interval(), true),
            DataType::Duration(_) => Field::new("", kinds::interval(), true),
            _ => kind.clone(),
        };
        let left = self.beside(*left, Some(&moved(&right_kind)));
        let right = self.beside(*right, Some(&moved(&left_kind)));
        let (left_kind, right_kind) = (field_of(&left, schema)?, field_of(&right, schema)?);
        if is_comparison(op) {
            return self.comparison((left, &left_kind), op, (right, &right_kind));
        }
        self.calculation((left, &left_kind), op, (right, &right_kind))
    }

    /// A value that is joined with a text, as its type prints it.
    pub(super) fn beside_text(&self, side: Expr, kind: &Field) -> Expr {
        let bytes = *kind.data_type() == DataType::Binary;
        if (is_readable(kind.data_type()) || matches!(kind.data_type(), DataType::Duration(_))) && !bytes
            || is_address(kind)
        {
            let text = kinds::tagged(DataType::Utf8, "text", None);
            return Convert::of(side, kind, &text, self.current);
        }
        side
    }

    fn truth(&self, side: Expr, kind: &Field, op: Operator, truth: &Field) -> Result<Expr> {
        match kind.data_type() {
            DataType::Boolean | DataType::Null => Ok(side),
            _ if is_unknown(&side) => Ok(self.read(side, truth)),
            _ => Err(not_boolean(&op.to_string(), &name_of(kind)).external()),
        }
    }

    fn comparison(&self, left: (Expr, &Field), op: Operator, right: (Expr, &Field)) -> Result<Expr> {
        let ((left, left_kind), (right, right_kind)) = (left, right);
        let foreign = |one: &Field, other: &Field| {
            let (one, other) = (one.data_type(), other.data_type());
            is_text(one) && (other.is_numeric() || is_readable(other))
                || *one == DataType::Boolean && other.is_numeric()
        };
        if foreign(left_kind, right_kind) || foreign(right_kind, left_kind) {
            return Err(no_operator(&name_of(left_kind), &op.to_string(), &name_of(right_kind)));
        }
        let is_json = |kind: &Field| is_text(kind.data_type()) && tag(kind) == "json";
        if is_json(left_kind) || is_json(right_kind) {
            return Err(no_operator(&name_of(left_kind), &op.to_string(), &name_of(right_kind)));
        }
        let is_jsonb = |kind: &Field| is_text(kind.data_type()) && tag(kind) == "jsonb";
        let jsonb = is_jsonb(left_kind) && is_jsonb(right_kind);
        if jsonb && !matches!(op, Operator::Eq | Operator::NotEq) {
            return Err(QueryError::new(SqlState::FeatureNotSupported, "an order of type jsonb is not supported")
                .about(Subject::Operator(op.to_string()))
                .external());
        }
        let addresses = is_address(left_kind) && is_address(right_kind);
        let length = |side: Expr, kind: &Field| match kind.data_type() {
            _ if addresses => declared::call(&ADDRESS_KEY, vec![side], self.current),
            _ if jsonb => declared::call(&JSONB_KEY, vec![side], self.current),
            DataType::Interval(_) | DataType::Duration(_) => declared::call(&LENGTH, vec![side], self.current),
            _ => side,
        };
        let zoned = |kind: &Field| matches!(kind.data_type(), DataType::Timestamp(_, Some(_)));
        let civil = |kind: &Field| matches!(kind.data_type(), DataType::Timestamp(_, None) | DataType::Date32);
        let point = |side: Expr, kind: &Field, other: &Field| {
            if civil(kind) && zoned(other) {
                return Convert::of(side, kind, &Field::new("", timestamptz(), true), self.current);
            }
            side
        };
        let left = point(length(left, left_kind), left_kind, right_kind);
        let right = point(length(right, right_kind), right_kind, left_kind);
        Ok(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }))
    }

    fn calculation(&self, left: (Expr, &Field), op: Operator, right: (Expr, &Field)) -> Result<Expr> {
        use DataType::{Date32, Duration, Interval, Timestamp};
        use Operator::{Divide, Minus, Multiply, Plus};
        let ((left, left_kind), (right, right_kind)) = (left, right);
        let (one, other) = (left_kind.data_type(), right_kind.data_type());
        let number = |kind: &DataType| kind.is_numeric() || kind.is_null();
        let call = |function, arguments| Ok(declared::call(function, arguments, self.current));
        match (one, op, other) {
            (one, _, other) if number(one) && number(other) => Ok(arithmetic(op, left, right)),
            (Date32, Minus, Date32) => call(&DAYS_SINCE, vec![left, right]),
            (Date32, Plus, kind) if kind.is_integer() => call(&DAYS_LATER, vec![left, right]),
            (kind, Plus, Date32) if kind.is_integer() => call(&DAYS_LATER, vec![right, left]),
            (Date32, Minus, kind) if kind.is_integer() => call(&DAYS_EARLIER, vec![left, right]),
            (Timestamp(..) | Date32, Plus, Interval(_) | Duration(_)) => call(&LATER, vec![left, right]),
            (Interval(_) | Duration(_), Plus, Timestamp(..) | Date32) => call(&LATER, vec![right, left]),
            (Timestamp(..) | Date32, Minus, Interval(_) | Duration(_)) => call(&EARLIER, vec![left, right]),
            (Timestamp(..) | Date32, Minus, Timestamp(..) | Date32) => call(&SINCE, vec![left, right]),
            (Interval(_) | Duration(_), Plus, Interval(_) | Duration(_)) => call(&LONGER, vec![left, right]),
            (Interval(_) | Duration(_), Minus, Interval(_) | Duration(_)) => call(&SHORTER, vec![left, right]),
            (Interval(_) | Duration(_), Multiply, kind) if kind.is_numeric() => call(&TIMES, vec![left, right]),
            (kind, Multiply, Interval(_) | Duration(_)) if kind.is_numeric() => call(&TIMES, vec![right, left]),
            (Interval(_) | Duration(_), Divide, kind) if kind.is_numeric() => call(&DIVIDED, vec![left, right]),
            (one, _, other) if !is_known(one) || !is_known(other) => {
                Ok(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }))
            }
            _ => Err(no_operator(&name_of(left_kind), &op.to_string(), &name_of(right_kind))),
        }
    }

    /// Casts mean what they mean in PostgreSQL; those that only widen a number are DataFusion's.
    fn casted(&self, whole: Cast, schema: &DFSchema) -> Result<Expr> {
        let placeholder = matches!(whole.expr.as_ref(), Expr::Placeholder(_));
        let Ok(from) = field_of(&whole.expr, schema) else { return Ok(Expr::Cast(whole)) };
        let mut to = whole.field.as_ref().clone().with_name("");
        // A parameter whose value is not known yet keeps its cast, which tells its type.
        if placeholder && is_text(to.data_type()) && (kinds::length(&to).is_some() || is_read_as_text(&to)) {
            let text = kinds::tagged(DataType::Utf8, "text", None);
            return Ok(Convert::of(Expr::Cast(whole), &text, &to, self.current));
        }
        if placeholder || !is_known_target(to.data_type()) {
            return Ok(Expr::Cast(whole));
        }
        if !is_allowed(&from, &to) {
            let message = format!("cannot cast type {} to {}", name_of(&from), name_of(&to));
            let error = QueryError::new(SqlState::CannotCoerce, message);
            return Err(error.about(Subject::Cast(name_of(&to))).external());
        }
        if *to.data_type() == NUMERIC && kinds::length(&to).is_none() {
            match numeric(&whole.expr, from.data_type()) {
                Some(kind) => to = to.with_data_type(kind),
                None => return Ok(*whole.expr),
            }
        }
        let (one, other) = (from.data_type(), to.data_type());
        if one.is_nested() && other.is_nested() {
            return Ok(Expr::Cast(whole));
        }
        if one.is_integer() && other.is_integer() && is_wider(other, one) || one.is_integer() && other.is_floating() {
            return Ok(Expr::Cast(whole));
        }
        // One text is another but for what its type is called.
        let same_text = is_text(one) && is_text(other) && tag(&from) == tag(&to) && kinds::length(&to).is_none();
        if same_text && !is_unknown(&whole.expr) {
            return Ok(*whole.expr);
        }
        Ok(Convert::of(*whole.expr, &from, &to, self.current))
    }
}

/// NULL in VALUES takes the type of the others, which can have become narrower since.
fn untyped(value: Expr) -> Expr {
    match value {
        Expr::Literal(ScalarValue::Int64(None), None) => Expr::Literal(ScalarValue::Null, None),
        other => other,
    }
}

/// The digits of a `numeric` without any; none for what is numeric already.
fn numeric(expression: &Expr, from: &DataType) -> Option<DataType> {
    match (expression, from) {
        (_, kind) if kind.is_decimal() => None,
        (_, kind) if kind.is_integer() => Some(DataType::Decimal128(20, 0)),
        (Expr::Literal(ScalarValue::Utf8(Some(text)), _), _) => {
            let digits = super::printed::plain_digits(text.trim()).unwrap_or_default();
            let scale = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            let scale = if digits.len() <= 37 { i8::try_from(scale).unwrap_or(10) } else { 10 };
            Some(DataType::Decimal128(38, scale))
        }
        _ => Some(NUMERIC),
    }
}

/// What DataFusion takes `numeric` without digits for.
pub(super) const NUMERIC: DataType = DataType::Decimal128(38, 10);

fn is_wider(one: &DataType, other: &DataType) -> bool {
    let width = |kind: &DataType| match kind {
        DataType::Int8 | DataType::UInt8 => 1,
        DataType::Int16 => 2,
        DataType::UInt16 | DataType::Int32 => 4,
        DataType::UInt32 => 5,
        _ => 8,
    };
    width(one) >= width(other) && (*one != DataType::UInt32 || one == other)
}

fn is_known_target(kind: &DataType) -> bool {
    match kind {
        DataType::List(item) => is_known_target(item.data_type()),
        DataType::Timestamp(datafusion::arrow::datatypes::TimeUnit::Microsecond, _) => true,
        DataType::Time64(datafusion::arrow::datatypes::TimeUnit::Microsecond) => true,
        DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::UInt32 => true,
        DataType::Float32 | DataType::Float64 | DataType::Boolean | DataType::Date32 => true,
        DataType::Decimal128(..) | DataType::Utf8 | DataType::Binary | DataType::Interval(_) => true,
        _ => false,
    }
}

/// The sum of bigints is numeric: it cannot overflow.
fn wide(arguments: Vec<Expr>, schema: &DFSchema) -> Vec<Expr> {
    let wide = |argument: Expr| match argument.get_type(schema) {
        Ok(DataType::Int64 | DataType::UInt64) => cast(argument, DataType::Decimal128(38, 0)),
        _ => argument,
    };
    arguments.into_iter().map(wide).collect()
}

/// The types a text is read as where it meets them.
fn is_readable(kind: &DataType) -> bool {
    let spans = matches!(kind, DataType::Timestamp(..) | DataType::Time64(_) | DataType::Interval(_));
    kind.is_numeric() || spans || matches!(kind, DataType::Boolean | DataType::Date32 | DataType::Binary)
}

pub(super) fn is_address(kind: &Field) -> bool {
    is_text(kind.data_type()) && matches!(tag(kind), "inet" | "cidr")
}

/// The types that are texts here, and whose texts are not all values.
fn is_read_as_text(kind: &Field) -> bool {
    is_text(kind.data_type()) && matches!(tag(kind), "inet" | "cidr" | "json" | "jsonb")
}

/// The types whose operators are all known here.
fn is_known(kind: &DataType) -> bool {
    is_text(kind) || is_readable(kind) || matches!(kind, DataType::Duration(_))
}

fn is_arithmetic(operator: Operator) -> bool {
    matches!(operator, Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo)
}

fn is_comparison(operator: Operator) -> bool {
    matches!(operator, Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

fn is_logical(operator: Operator) -> bool {
    matches!(operator, Operator::And | Operator::Or)
}

fn arithmetic(op: Operator, left: Expr, right: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(Arithmetic::new(op))), vec![left, right]))
}

/// A number without its fraction, as casts to integers have it.
pub(super) fn rounded(number: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(Rounded::new())), vec![number]))
}

/// `||` joins texts or arrays: one of its sides is such.
pub(super) fn forbid_joining(left: &Expr, right: &Expr, schema: &DFSchema) -> Result<()> {
    let (Ok(left), Ok(right)) = (field_of(left, schema), field_of(right, schema)) else { return Ok(()) };
    let other = |kind: &DataType| is_readable(kind) && *kind != DataType::Binary;
    if other(left.data_type()) && other(right.data_type()) {
        return Err(no_operator(&name_of(&left), "||", &name_of(&right)));
    }
    Ok(())
}

fn no_operator(left: &str, op: &str, right: &str) -> DataFusionError {
    let op = if op == "!=" { "<>" } else { op };
    QueryError::new(SqlState::UndefinedFunction, format!("operator does not exist: {left} {op} {right}"))
        .hinting("No operator matches the given name and argument types. You might need to add explicit type casts.")
        .about(Subject::Operator(op.to_owned()))
        .external()
}
