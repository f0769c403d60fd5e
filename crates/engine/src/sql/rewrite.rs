//! What PostgreSQL's clients write and DataFusion does not read, written otherwise: casts to PostgreSQL's types of
//! objects, `OPERATOR(...)`, `COLLATE`, `ARRAY(SELECT ...)`, functions in FROM. The meaning stays.

use std::iter::Peekable;
use std::ops::ControlFlow;
use std::str::Chars;

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    Array, ArrayElemTypeDef, BinaryOperator, CaseWhen, CastKind, DataType, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, Interval, LimitClause, ObjectName, Query, Select,
    SelectItem, SetExpr, Statement, TableAlias, TableAliasColumnDef, TableFactor, TableFunctionArgs, UnaryOperator,
    Value, VisitMut, VisitorMut, visit_expressions, visit_expressions_mut,
};

use super::session_functions::CURRENT_SETTING;
use super::set_functions::SET_FUNCTIONS;
use super::subquery::ARRAY;
use super::{empty, guard, quantified};
use crate::tables::pg_catalog::set_named;

/// Rewrites a whole statement.
pub(super) fn rewrite(statement: &mut Statement) {
    empty::replace(statement);
    let _: ControlFlow<()> = VisitMut::visit(statement, &mut Rewriter);
    settings_in_order(statement);
    if let Statement::Query(query) = statement {
        show_objects(&mut query.body);
    }
}

/// Where settings are set, they are read in the same order.
fn settings_in_order(statement: &mut Statement) {
    let calls = |expression: &Expr, wanted: &str| match expression {
        Expr::Function(function) => {
            guard::last_part(&function.name).is_some_and(|name| name.eq_ignore_ascii_case(wanted))
        }
        _ => false,
    };
    let sets = visit_expressions(statement, |expression| match calls(expression, "set_config") {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    if sets.is_continue() {
        return;
    }
    let _: ControlFlow<()> = visit_expressions_mut(statement, |expression| {
        if calls(expression, "current_setting")
            && let Expr::Function(function) = expression
        {
            function.name = ObjectName::from(vec![Ident::new(CURRENT_SETTING)]);
        }
        ControlFlow::Continue(())
    });
}

/// PostgreSQL's types whose values are objects' numbers and print as names.
const OBJECT_TYPES: &[(&str, &str)] = &[
    ("regclass", "__regclass"),
    ("regtype", "__regtype"),
    ("regproc", "__regproc"),
    ("regprocedure", "__regproc"),
    ("regoper", "__regproc"),
    ("regoperator", "__regproc"),
    ("regnamespace", "__regnamespace"),
    ("regrole", "__regrole"),
];

struct Rewriter;

impl VisitorMut for Rewriter {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        super::chains::balance(expression);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        let taken = std::mem::replace(expression, Expr::Value(Value::Null.into()));
        *expression = match taken {
            Expr::Collate { expr, .. } => *expr,
            Expr::Interval(interval) => interval_cast(interval),
            Expr::Substring { expr, substring_from: Some(pattern), substring_for: None, .. } if is_text(&pattern) => {
                let found = call("regexp_match", vec![*expr, *pattern]);
                call("array_element", vec![found, Expr::value(Value::Number("1".to_owned(), false))])
            }
            Expr::AtTimeZone { timestamp, time_zone } => call("timezone", vec![*time_zone, *timestamp]),
            Expr::Cast { kind, expr, data_type, array, format } => cast(kind, *expr, data_type, array, format),
            Expr::BinaryOp { left, op, right } => binary(*left, op, *right),
            Expr::Function(function) => subscripts_in_list(renamed(array_subquery(function))),
            Expr::AnyOp { left, compare_op, right, is_some } if matches!(*right, Expr::Subquery(_)) => {
                Expr::AnyOp { left, compare_op: operator(compare_op), right, is_some }
            }
            Expr::AllOp { left, compare_op, right } if matches!(*right, Expr::Subquery(_)) => {
                Expr::AllOp { left, compare_op: operator(compare_op), right }
            }
            Expr::AnyOp { left, compare_op, right, .. } => {
                quantified::any(*left, operator(compare_op), array_literal(*right))
            }
            Expr::AllOp { left, compare_op, right } => {
                quantified::all(*left, operator(compare_op), array_literal(*right))
            }
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => minus_first(*expr),
            // The planner has no `~x`.
            Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr } => {
                let ones = Box::new(Expr::value(Value::Number("-1".to_owned(), false)));
                nested(Expr::BinaryOp { left: ones, op: BinaryOperator::PGBitwiseXor, right: Box::new(nested(*expr)) })
            }
            Expr::Identifier(name) if is_session_word(&name) => call(&name.value.to_lowercase(), Vec::new()),
            other => other,
        };
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let SetExpr::Values(values) = query.body.as_mut() {
            super::row_values::cast_alike(values);
        }
        super::order::name_places(query);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        spread_series(select);
        super::lateral::mark_functions(select);
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Derived { subquery, .. } = factor {
            keep_order(subquery);
        }
        plain_function(factor);
        let counted = ordinality(factor);
        set_as_table(factor);
        name_values(factor);
        narrow_series(factor);
        if let Some(alias) = counted {
            count_rows(factor, alias);
        }
        ControlFlow::Continue(())
    }
}

/// `interval '1' day` as `'1 day'::interval`.
fn interval_cast(interval: Interval) -> Expr {
    let unit = match &interval {
        Interval { leading_field: Some(unit), last_field: None, leading_precision: None, .. } => unit.to_string(),
        _ => String::new(),
    };
    let written = match interval.value.as_ref() {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => text.clone(),
            _ => return Expr::Interval(interval),
        },
        _ => return Expr::Interval(interval),
    };
    let bare = written.trim().parse::<f64>().is_ok() && !unit.is_empty();
    let text = if bare { format!("{} {unit}", written.trim()) } else { written };
    Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(Expr::Value(Value::SingleQuotedString(text).into())),
        data_type: DataType::Interval { fields: None, precision: None },
        array: false,
        format: None,
    }
}

/// A call of a function.
pub(super) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let arguments = arguments.into_iter().map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

fn cast(
    kind: CastKind,
    expression: Expr,
    data_type: DataType,
    array: bool,
    format: Option<sqlparser::ast::CastFormat>,
) -> Expr {
    let written = type_name(&data_type);
    let name = written.as_str();
    if let Some((_, function)) = OBJECT_TYPES.iter().find(|(own, _)| *own == name) {
        return match object_call(&expression) {
            // From one type of objects to another is only another view of a number.
            Some(_) => expression,
            None => call(function, vec![expression]),
        };
    }
    if name == "regtype[]" {
        return call("__regtype_names", vec![expression]);
    }
    if let Some(items) = name.strip_suffix("[]").and_then(|_| literal_items(&expression)) {
        return array_of(items, element_type(&data_type));
    }
    let data_type = plain_type(name).unwrap_or(data_type);
    let is_text = matches!(data_type, DataType::Text | DataType::Varchar(_) | DataType::Custom(..));
    let expr = if is_text { shown(expression) } else { expression };
    Expr::Cast { kind, expr: Box::new(expr), data_type, array, format }
}

/// A type's name without quotes and schema; `"char"` keeps its quotes, since `char` is another type.
fn type_name(data_type: &DataType) -> String {
    let written = data_type.to_string().to_lowercase();
    let name =
        written.strip_prefix("pg_catalog.").or_else(|| written.strip_prefix("\"pg_catalog\".")).unwrap_or(&written);
    if name.starts_with("\"char\"") { name.to_owned() } else { name.replace('"', "") }
}

/// What PostgreSQL calls otherwise than the standard, or qualifies.
fn plain_type(name: &str) -> Option<DataType> {
    if let Some(element) = name.strip_suffix("[]") {
        let element = plain_type(element)?;
        return Some(DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(element), None)));
    }
    Some(match name {
        "text" | "\"text\"" | "unknown" | "cstring" | "pg_node_tree" | "xml" => DataType::Text,
        "name" | "\"name\"" => named_type("name"),
        "\"char\"" => named_type("char"),
        "varchar" | "\"varchar\"" => DataType::Varchar(None),
        "bpchar" | "json" | "jsonb" | "inet" | "cidr" | "timestamptz" | "bytea" => named_type(name),
        "oid" | "xid" | "cid" => DataType::IntUnsigned(None),
        "int2" | "smallint" => DataType::SmallInt(None),
        "int4" | "integer" | "int" => DataType::Integer(None),
        "int8" | "bigint" => DataType::BigInt(None),
        "bool" | "boolean" => DataType::Boolean,
        "float4" => DataType::Real,
        "float8" | "float" => DataType::DoublePrecision,
        _ if name.starts_with("float(") => return binary_digits(name),
        "int2vector" => DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(DataType::SmallInt(None)), None)),
        "oidvector" => DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(DataType::IntUnsigned(None)), None)),
        _ => return None,
    })
}

/// `float(n)` is the type that has so many binary digits.
pub(super) fn binary_digits(name: &str) -> Option<DataType> {
    let digits: u32 = name.strip_prefix("float(")?.strip_suffix(')')?.parse().ok()?;
    Some(if digits <= 24 { DataType::Real } else { DataType::DoublePrecision })
}

fn named_type(name: &str) -> DataType {
    DataType::Custom(ObjectName::from(vec![Ident::new(name)]), Vec::new())
}

fn element_type(data_type: &DataType) -> DataType {
    let written = type_name(data_type);
    let name = written.as_str();
    match plain_type(name.strip_suffix("[]").unwrap_or(name)) {
        Some(element) => element,
        None => DataType::Text,
    }
}

/// The items of a literal `'{a,"b c",NULL}'`, NULL for none; none for what is no such literal or has more dimensions.
fn literal_items(expression: &Expr) -> Option<Vec<Option<String>>> {
    if let Expr::Nested(inner) = expression {
        return literal_items(inner);
    }
    let Expr::Value(value) = expression else { return None };
    let (Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text)) = &value.value else { return None };
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    if inner.trim().is_empty() {
        return Some(Vec::new());
    }
    let (mut items, mut characters) = (Vec::new(), inner.chars().peekable());
    loop {
        items.push(literal_item(&mut characters)?);
        match characters.next() {
            None => return Some(items),
            Some(',') => {}
            Some(_) => return None,
        }
    }
}

/// One item, up to the comma behind it.
fn literal_item(characters: &mut Peekable<Chars<'_>>) -> Option<Option<String>> {
    while characters.next_if(|character| character.is_whitespace()).is_some() {}
    if characters.next_if_eq(&'"').is_some() {
        let item = quoted_item(characters)?;
        while characters.next_if(|character| character.is_whitespace()).is_some() {}
        return Some(Some(item));
    }
    let mut item = String::new();
    while let Some(character) = characters.next_if(|character| *character != ',') {
        match character {
            '"' | '{' | '}' => return None,
            '\\' => item.push(characters.next()?),
            plain => item.push(plain),
        }
    }
    let item = item.trim_end();
    if item.is_empty() { None } else { Some((!item.eq_ignore_ascii_case("null")).then(|| item.to_owned())) }
}

/// What is between quotes, the first of which was read.
fn quoted_item(characters: &mut impl Iterator<Item = char>) -> Option<String> {
    let mut item = String::new();
    loop {
        match characters.next()? {
            '"' => return Some(item),
            '\\' => item.push(characters.next()?),
            character => item.push(character),
        }
    }
}

fn array_of(items: Vec<Option<String>>, element: DataType) -> Expr {
    let item = |item: Option<String>| Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(Expr::Value(item.map_or(Value::Null, Value::SingleQuotedString).into())),
        data_type: element.clone(),
        array: false,
        format: None,
    };
    if items.is_empty() { no_values() } else { call("make_array", items.into_iter().map(item).collect()) }
}

/// `= ANY ('{a,b}')` without a cast.
fn array_literal(expression: Expr) -> Expr {
    match literal_items(&expression) {
        Some(items) if items.is_empty() => no_values(),
        // Texts without a type are read as what they are compared with.
        Some(items) => {
            let item = |item: Option<String>| Expr::value(item.map_or(Value::Null, Value::SingleQuotedString));
            Expr::Array(Array { elem: items.into_iter().map(item).collect(), named: true })
        }
        None => expression,
    }
}

fn operator(operator: BinaryOperator) -> BinaryOperator {
    let BinaryOperator::PGCustomBinaryOperator(names) = &operator else { return operator };
    match names.last().map_or("", String::as_str) {
        "~" => BinaryOperator::PGRegexMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "~~*" => BinaryOperator::PGILikeMatch,
        "!~~*" => BinaryOperator::PGNotILikeMatch,
        "=" => BinaryOperator::Eq,
        "<>" | "!=" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        "%" => BinaryOperator::Modulo,
        "||" => BinaryOperator::StringConcat,
        _ => operator,
    }
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    let op = operator(op);
    if let BinaryOperator::Custom(own) = &op
        && let Some((_, function)) = NETWORK_OPERATORS.iter().find(|(written, _)| written == own)
    {
        return call(function, vec![left, right]);
    }
    if let Some(function) = network_shift(&op, &left, &right) {
        return call(function, vec![left, right]);
    }
    let (left, right) = match op {
        BinaryOperator::StringConcat if is_parameter(&left) && is_parameter(&right) => (text(left), text(right)),
        BinaryOperator::StringConcat => (shown(left), shown(right)),
        BinaryOperator::PGLikeMatch
        | BinaryOperator::PGNotLikeMatch
        | BinaryOperator::PGILikeMatch
        | BinaryOperator::PGNotILikeMatch => (left, bounded_pattern(right)),
        _ => (left, right),
    };
    match right {
        // `a ^ -b ^ c` is read as `a ^ -(b ^ c)`, which is `a ^ (-b ^ c)` now.
        Expr::BinaryOp { left: first, op: BinaryOperator::PGExp, right: last }
            if op == BinaryOperator::PGExp && is_minus(&first) =>
        {
            Expr::BinaryOp { left: Box::new(binary(left, op.clone(), *first)), op, right: last }
        }
        right => Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) },
    }
}

fn bounded_pattern(pattern: Expr) -> Expr {
    // A literal that is none fails when it is matched.
    super::patterns::like_pattern(pattern.clone(), Some('\\')).unwrap_or_else(|_| {
        let escape = Expr::value(Value::SingleQuotedString("\\".to_owned()));
        call(super::patterns::LIKE_PATTERN, vec![pattern, escape])
    })
}

fn is_text(expression: &Expr) -> bool {
    let text = |value: &Value| matches!(value, Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_));
    matches!(expression, Expr::Value(value) if text(&value.value))
}

fn is_parameter(expression: &Expr) -> bool {
    matches!(expression, Expr::Value(value) if matches!(value.value, Value::Placeholder(_)))
}

fn text(expression: Expr) -> Expr {
    let (kind, expr) = (CastKind::DoubleColon, Box::new(expression));
    Expr::Cast { kind, expr, data_type: DataType::Text, array: false, format: None }
}

/// The function of a shift, where a side is written as an address: only networks have it then.
fn network_shift(op: &BinaryOperator, left: &Expr, right: &Expr) -> Option<&'static str> {
    let function = match op.to_string().as_str() {
        "<<" => "network_sub",
        ">>" => "network_sup",
        _ => return None,
    };
    (is_address(left) || is_address(right)).then_some(function)
}

fn is_address(expression: &Expr) -> bool {
    match expression {
        Expr::Nested(inner) => is_address(inner),
        Expr::Cast { data_type, .. } => matches!(type_name(data_type).as_str(), "inet" | "cidr"),
        _ => false,
    }
}

/// Operators that only networks have, and PostgreSQL's functions behind them.
const NETWORK_OPERATORS: [(&str, &str); 2] = [("<<=", "network_subeq"), (">>=", "network_supeq")];

/// Words that are calls without parentheses.
fn is_session_word(name: &Ident) -> bool {
    let words = ["current_schema", "current_role"];
    name.quote_style.is_none() && words.iter().any(|word| name.value.eq_ignore_ascii_case(word))
}

fn is_minus(expression: &Expr) -> bool {
    match expression {
        Expr::UnaryOp { op: UnaryOperator::Minus, .. } => true,
        Expr::BinaryOp { left, op: BinaryOperator::PGExp, .. } => is_minus(left),
        _ => false,
    }
}

/// A minus binds tighter than `^`, and is read as if it did not.
fn minus_first(expression: Expr) -> Expr {
    match expression {
        Expr::BinaryOp { left, op: BinaryOperator::PGExp, right } => {
            Expr::BinaryOp { left: Box::new(minus_first(*left)), op: BinaryOperator::PGExp, right }
        }
        other => Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(other) },
    }
}

/// The function of a cast to a type of objects.
fn object_call(expression: &Expr) -> Option<&'static str> {
    let Expr::Function(function) = expression else { return None };
    let name = guard::last_part(&function.name)?;
    OBJECT_TYPES.iter().map(|(_, function)| *function).find(|function| *function == name)
}

/// An object where its text is wanted: its name.
fn shown(expression: Expr) -> Expr {
    match (object_call(&expression), expression) {
        (Some(name), Expr::Function(mut function)) => {
            function.name = ObjectName::from(vec![Ident::new(format!("{name}_name"))]);
            Expr::Function(function)
        }
        (_, expression) => expression,
    }
}

/// Objects in the result of the whole query are shown by their names.
fn show_objects(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => {
            for item in &mut select.projection {
                if let SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } = item {
                    let taken = std::mem::replace(expression, Expr::Value(Value::Null.into()));
                    *expression = shown(taken);
                }
            }
        }
        SetExpr::Query(query) => show_objects(&mut query.body),
        SetExpr::SetOperation { left, right, .. } => {
            show_objects(left);
            show_objects(right);
        }
        _ => {}
    }
}

/// Functions that DataFusion has under another name.
const RENAMED: [(&str, &str); 6] = [
    ("every", "bool_and"),
    ("sign", "signum"),
    ("variance", "var_samp"),
    ("pow", "power"),
    ("array_remove", "array_remove_all"),
    ("array_replace", "array_replace_all"),
];

fn renamed(expression: Expr) -> Expr {
    let Expr::Function(mut function) = expression else { return expression };
    let name = guard::last_part(&function.name).unwrap_or_default().to_lowercase();
    if name == "mod"
        && let FunctionArguments::List(list) = &function.args
        && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(left)), FunctionArg::Unnamed(FunctionArgExpr::Expr(right))] =
            list.args.as_slice()
    {
        let (left, right) = (Box::new(nested(left.clone())), Box::new(nested(right.clone())));
        return nested(Expr::BinaryOp { left, op: BinaryOperator::Modulo, right });
    }
    if let ("lpad" | "rpad", FunctionArguments::List(list)) = (name.as_str(), &mut function.args)
        && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(length))) = list.args.get_mut(1)
    {
        // What is shorter than nothing is nothing.
        let taken = std::mem::replace(length, Expr::value(Value::Null));
        *length = at_least_nothing(taken);
    }
    // What has no elements has no dimensions either.
    if name == "array_length" {
        return nothing_for_zero(Expr::Function(function));
    }
    if name == "array_ndims"
        && let FunctionArguments::List(list) = &function.args
        && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(array))] = list.args.as_slice()
    {
        let first = Expr::value(Value::Number("1".to_owned(), false));
        let length = || Box::new(nothing_for_zero(call("array_length", vec![array.clone(), first.clone()])));
        return nested(Expr::BinaryOp { left: length(), op: BinaryOperator::Divide, right: length() });
    }
    if let ("age", FunctionArguments::List(list)) = (name.as_str(), &mut function.args)
        && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(moment))] = list.args.as_slice()
    {
        let today = Box::new(call("current_date", Vec::new()));
        let kind = CastKind::DoubleColon;
        let midnight = Expr::Cast { kind, expr: today, data_type: named_type("timestamp"), array: false, format: None };
        return call("age", vec![midnight, moment.clone()]);
    }
    if let Some((_, own)) = RENAMED.iter().find(|(theirs, _)| *theirs == name) {
        function.name = ObjectName::from(vec![Ident::new(*own)]);
    }
    Expr::Function(function)
}

fn nothing_for_zero(number: Expr) -> Expr {
    call("nullif", vec![number, Expr::value(Value::Number("0".to_owned(), false))])
}

/// A length; 0 for one below. NULL stays NULL.
fn at_least_nothing(length: Expr) -> Expr {
    let zero = || Expr::value(Value::Number("0".to_owned(), false));
    let (left, right) = (Box::new(nested(length.clone())), Box::new(zero()));
    let below = CaseWhen { condition: Expr::BinaryOp { left, op: BinaryOperator::Lt, right }, result: zero() };
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![below],
        else_result: Some(Box::new(length)),
    }
}

fn nested(expression: Expr) -> Expr {
    Expr::Nested(Box::new(expression))
}

/// `SELECT generate_series(...)` gives rows.
fn spread_series(select: &mut Select) {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } = item
            && let Expr::Function(function) = &*expression
            && guard::last_part(&function.name).is_some_and(|name| name.eq_ignore_ascii_case("generate_series"))
        {
            let taken = std::mem::replace(expression, Expr::Value(Value::Null.into()));
            *expression = call("unnest", vec![taken]);
        }
    }
}

/// `LATERAL f(...)` is what `f(...)` is where nothing in it is from outside; the planner tells where something is.
fn plain_function(factor: &mut TableFactor) {
    let TableFactor::Function { name, args, alias, with_ordinality, .. } = factor else { return };
    *factor = TableFactor::Table {
        name: name.clone(),
        alias: alias.take(),
        args: Some(TableFunctionArgs { args: std::mem::take(args), settings: None }),
        with_hints: Vec::new(),
        version: None,
        with_ordinality: *with_ordinality,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
}

/// Takes `WITH ORDINALITY` off a function in FROM, and the alias of the whole.
fn ordinality(factor: &mut TableFactor) -> Option<TableAlias> {
    let (with, alias, name) = match factor {
        TableFactor::Table { with_ordinality, alias, name, args: Some(_), .. } => {
            (with_ordinality, alias, guard::last_part(name).unwrap_or_default().to_lowercase())
        }
        TableFactor::UNNEST { with_ordinality, alias, .. } => (with_ordinality, alias, "unnest".to_owned()),
        _ => return None,
    };
    if !std::mem::take(with) {
        return None;
    }
    Some(alias.take().unwrap_or_else(|| plain_alias(&name)))
}

/// A function's rows with their numbers behind them.
fn count_rows(factor: &mut TableFactor, mut alias: TableAlias) {
    if alias.columns.len() < 2 {
        let column = |name: Ident| TableAliasColumnDef { name, data_type: None };
        if alias.columns.is_empty() {
            alias.columns.push(column(alias.name.clone()));
        }
        alias.columns.push(column(Ident::new("ordinality")));
    }
    let lateral = match &*factor {
        TableFactor::UNNEST { array_exprs, .. } => array_exprs.iter().any(super::lateral::takes_columns),
        _ => false,
    };
    let inner = format!("SELECT *, row_number() OVER () AS ordinality FROM {factor}");
    let parsed = sqlparser::parser::Parser::new(&sqlparser::dialect::PostgreSqlDialect {});
    let Ok(subquery) = parsed.try_with_sql(&inner).and_then(|mut parser| parser.parse_query()) else { return };
    *factor = TableFactor::Derived { lateral, subquery, alias: Some(alias), sample: None };
}

/// `ARRAY(SELECT ...)`, which is parsed as a function of a query.
fn array_subquery(function: Function) -> Expr {
    let named = guard::last_part(&function.name).is_some_and(|name| name.eq_ignore_ascii_case("array"));
    match function.args {
        FunctionArguments::Subquery(mut query) if named => {
            keep_order(&mut query);
            call(ARRAY, vec![Expr::Subquery(query)])
        }
        args => Expr::Function(Function { args, ..function }),
    }
}

/// The planner drops an order within a query that gives all its rows; PostgreSQL keeps it.
fn keep_order(query: &mut Query) {
    if query.order_by.is_some() && query.limit_clause.is_none() {
        let limit = Some(Expr::value(Value::Number(i32::MAX.to_string(), false)));
        query.limit_clause = Some(LimitClause::LimitOffset { limit, offset: None, limit_by: Vec::new() });
    }
}

/// Whether DataFusion takes a function as a table.
pub(super) fn gives_rows(name: &str) -> bool {
    name == "generate_series" || SET_FUNCTIONS.iter().any(|function| function.name == name)
}

/// A function in FROM whose rows are declared as those of a table.
fn set_as_table(factor: &mut TableFactor) {
    let TableFactor::Table { name, alias, args: arguments @ Some(_), .. } = factor else { return };
    let Some(table) = guard::last_part(name).and_then(set_named) else { return };
    let own = alias.get_or_insert_with(|| plain_alias(guard::last_part(name).unwrap_or_default()));
    if let [only] = table.columns
        && own.columns.is_empty()
        && own.name.value != only.name
    {
        own.columns = vec![TableAliasColumnDef { name: own.name.clone(), data_type: None }];
    }
    *name = ObjectName::from(vec![Ident::new(table.schema), Ident::new(table.name)]);
    *arguments = None;
}

/// `generate_subscripts` in a select list.
fn subscripts_in_list(expression: Expr) -> Expr {
    match expression {
        Expr::Function(Function { name, args: FunctionArguments::List(list), over: None, .. })
            if guard::last_part(&name).is_some_and(|name| name.eq_ignore_ascii_case("generate_subscripts")) =>
        {
            let arguments = list.args.into_iter().filter_map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
                _ => None,
            });
            call("unnest", vec![subscripts(arguments.collect())])
        }
        other => other,
    }
}

/// Functions in FROM: `unnest` however it is written, `generate_series` of what is no literal, and the function's alias
/// for its one column.
fn name_values(factor: &mut TableFactor) {
    if let TableFactor::Table { name, alias, args: Some(arguments), .. } = factor {
        let function = guard::last_part(name).unwrap_or_default().to_lowercase();
        let values: Option<Vec<Expr>> = arguments
            .args
            .iter()
            .map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
                _ => None,
            })
            .collect();
        let literal = |value: &Expr| match value {
            Expr::Value(value) => !matches!(value.value, Value::Placeholder(_)),
            other => matches!(other, Expr::UnaryOp { .. }),
        };
        let array_exprs = match (function.as_str(), values) {
            ("unnest", Some(values)) => Some(values),
            ("generate_subscripts", Some(values)) => Some(vec![subscripts(values)]),
            ("generate_series", Some(values)) if !values.iter().all(literal) => {
                Some(vec![call("generate_series", values)])
            }
            // Any other function gives one row.
            (other, Some(values)) if !gives_rows(other) => Some(vec![call("make_array", vec![call(other, values)])]),
            _ => None,
        };
        if let Some(array_exprs) = array_exprs {
            let alias = alias.take().or_else(|| Some(plain_alias(&function)));
            *factor = TableFactor::UNNEST {
                alias,
                array_exprs,
                with_offset: false,
                with_offset_alias: None,
                with_ordinality: false,
            };
        }
    }
    let alias = match factor {
        TableFactor::Table { name, alias, args: Some(_), .. }
            if guard::last_part(name).is_some_and(|name| name.eq_ignore_ascii_case("generate_series")) =>
        {
            alias
        }
        TableFactor::UNNEST { alias, array_exprs, .. } if array_exprs.len() == 1 => alias,
        _ => return,
    };
    if let Some(alias) = alias
        && alias.columns.is_empty()
    {
        alias.columns = vec![TableAliasColumnDef { name: alias.name.clone(), data_type: None }];
    }
}

/// The positions in an array; PostgreSQL's second argument is its dimension, and there is only one here.
fn subscripts(mut arguments: Vec<Expr>) -> Expr {
    arguments.truncate(1);
    let dimension = || Expr::Value(Value::Number("1".to_owned(), false).into());
    let bound = |name: &str| call(name, arguments.iter().cloned().chain([dimension()]).collect());
    call("generate_series", vec![bound("array_lower"), bound("array_upper")])
}

/// A series of literals that are integers gives integers, which the planner's own function does not.
fn narrow_series(factor: &mut TableFactor) {
    let TableFactor::Table { name, alias, args: Some(arguments), .. } = factor else { return };
    if !guard::last_part(name).is_some_and(|name| name.eq_ignore_ascii_case("generate_series")) {
        return;
    }
    let narrow = arguments.args.iter().all(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => value.to_string().parse::<i32>().is_ok(),
        _ => false,
    });
    let column = match alias {
        Some(alias) => alias.columns.first().map_or(alias.name.clone(), |column| column.name.clone()),
        None => Ident::new("generate_series"),
    };
    let source = alias.as_ref().map_or_else(|| Ident::new("generate_series"), |alias| alias.name.clone());
    let kind = if narrow { "INT" } else { "BIGINT" };
    let inner = format!("SELECT CAST(value AS {kind}) AS {column} FROM {}", without_alias(name, arguments));
    let parsed = sqlparser::parser::Parser::new(&sqlparser::dialect::PostgreSqlDialect {});
    let Ok(subquery) = parsed.try_with_sql(&inner).and_then(|mut parser| parser.parse_query()) else { return };
    let alias = Some(TableAlias { explicit: true, name: source, columns: Vec::new(), at: None });
    *factor = TableFactor::Derived { lateral: false, subquery, alias, sample: None };
}

fn without_alias(name: &ObjectName, arguments: &TableFunctionArgs) -> String {
    let values: Vec<String> = arguments.args.iter().map(ToString::to_string).collect();
    format!("{name}({})", values.join(", "))
}

fn plain_alias(name: &str) -> TableAlias {
    TableAlias { explicit: true, name: Ident::new(name), columns: Vec::new(), at: None }
}

/// What `ARRAY(SELECT ...)` gives when there are no rows.
pub(super) fn no_values() -> Expr {
    call("__no_texts", Vec::new())
}
