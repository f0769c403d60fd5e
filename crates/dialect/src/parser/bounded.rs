//! PostgreSQL's dialect of sqlparser, with a limit on the work it may make.
//!
//! sqlparser tries several readings of an expression one after the other, and each tries several of the next inner
//! one: the time that nested calls take doubles and more with every level, far below the limit on recursion.

use std::any::TypeId;
use std::cell::Cell;

use sqlparser::ast::{BinaryOperator, Expr, Statement};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};

/// Behaves as `PostgreSqlDialect` until so many expressions have been begun.
#[derive(Debug)]
pub(super) struct Bounded {
    postgres: PostgreSqlDialect,
    expressions_left: Cell<usize>,
    statements_left: Cell<usize>,
}

impl Bounded {
    /// With so many expressions and statements to begin, those in abandoned readings too.
    pub fn new(expressions_max: usize, statements_max: usize) -> Self {
        Self {
            postgres: PostgreSqlDialect {},
            expressions_left: Cell::new(expressions_max),
            statements_left: Cell::new(statements_max),
        }
    }

    /// Whether a limit was met. Not every reading passes the error on.
    pub fn is_exhausted(&self) -> bool {
        self.expressions_left.get() == 0 || self.statements_left.get() == 0
    }
}

impl Bounded {
    fn between_symmetric(&self, parser: &mut Parser, value: &Expr, negated: bool) -> Result<Expr, ParserError> {
        let precedence = self.prec_value(Precedence::Between);
        let low = parser.parse_subexpr(precedence)?;
        parser.expect_keyword(Keyword::AND)?;
        let high = parser.parse_subexpr(precedence)?;
        let between = |low: &Expr, high: &Expr| {
            let bounds = (Box::new(low.clone()), Box::new(high.clone()));
            Box::new(Expr::Between { expr: Box::new(value.clone()), negated, low: bounds.0, high: bounds.1 })
        };
        let op = if negated { BinaryOperator::And } else { BinaryOperator::Or };
        let either = Expr::BinaryOp { left: between(&low, &high), op, right: between(&high, &low) };
        Ok(Expr::Nested(Box::new(either)))
    }
}

/// The error of the recursion limit is the one that ends most readings at once.
fn count_down(left: &Cell<usize>) -> Result<(), ParserError> {
    left.set(left.get().checked_sub(1).ok_or(ParserError::RecursionLimitExceeded)?);
    Ok(())
}

/// Passes questions on. These are all that `PostgreSqlDialect` answers otherwise than the trait does.
macro_rules! as_postgres {
    ($($method:ident ( $($argument:ident : $type:ty),* ) -> $result:ty;)*) => {
        $(fn $method(&self, $($argument: $type),*) -> $result {
            self.postgres.$method($($argument),*)
        })*
    };
}

impl Dialect for Bounded {
    fn dialect(&self) -> TypeId {
        self.postgres.dialect()
    }

    fn parse_statement(&self, _parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
        count_down(&self.statements_left).err().map(Err)
    }

    fn parse_prefix(&self, _parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        count_down(&self.expressions_left).err().map(Err)
    }

    /// `BETWEEN SYMMETRIC`, which sqlparser does not know: its bounds may come in either order.
    fn parse_infix(&self, parser: &mut Parser, expr: &Expr, _precedence: u8) -> Option<Result<Expr, ParserError>> {
        let negated = parser.parse_keywords(&[Keyword::NOT, Keyword::BETWEEN, Keyword::SYMMETRIC]);
        if !negated && !parser.parse_keywords(&[Keyword::BETWEEN, Keyword::SYMMETRIC]) {
            return None;
        }
        Some(self.between_symmetric(parser, expr, negated))
    }

    as_postgres! {
        identifier_quote_style(identifier: &str) -> Option<char>;
        is_delimited_identifier_start(ch: char) -> bool;
        is_identifier_start(ch: char) -> bool;
        is_identifier_part(ch: char) -> bool;
        supports_unicode_string_literal() -> bool;
        is_reserved_for_identifier(keyword: Keyword) -> bool;
        is_custom_operator_part(ch: char) -> bool;
        get_next_precedence(parser: &Parser) -> Option<Result<u8, ParserError>>;
        supports_filter_during_aggregation() -> bool;
        supports_group_by_expr() -> bool;
        prec_value(precedence: Precedence) -> u8;
        allow_extract_custom() -> bool;
        allow_extract_single_quotes() -> bool;
        supports_create_index_with_clause() -> bool;
        supports_explain_with_utility_options() -> bool;
        supports_listen_notify() -> bool;
        supports_factorial_operator() -> bool;
        supports_bitwise_shift_operators() -> bool;
        supports_comment_on() -> bool;
        supports_load_extension() -> bool;
        supports_named_fn_args_with_colon_operator() -> bool;
        supports_named_fn_args_with_expr_name() -> bool;
        supports_empty_projections() -> bool;
        supports_nested_comments() -> bool;
        supports_string_escape_constant() -> bool;
        supports_numeric_literal_underscores() -> bool;
        supports_array_typedef_with_brackets() -> bool;
        supports_geometric_types() -> bool;
        supports_set_names() -> bool;
        supports_alter_column_type_using() -> bool;
        supports_notnull_operator() -> bool;
        supports_interval_options() -> bool;
        supports_insert_table_alias() -> bool;
        supports_create_table_like_parenthesized() -> bool;
        supports_select_wildcard_with_alias() -> bool;
        supports_comma_separated_trim() -> bool;
        supports_xml_expressions() -> bool;
        supports_comment_optimizer_hint() -> bool;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statements that only parse, or parse so, because PostgreSQL's dialect answers as it does.
    #[test]
    fn reads_as_postgres_does() {
        let texts = [
            "SELECT a #> b -> c ->> d, e COLLATE \"C\" < f, g[1][2:3], h::int[], i NOTNULL, 5 !, 1 << 2, a ~* 'b'",
            "SELECT count(*) FILTER (WHERE a), EXTRACT('year' FROM b), EXTRACT(quux FROM b), trim(a, b)",
            "SELECT json_object('a': 'b'), json_object('a' VALUE 'b'), f(a => 1), f(a := 1), xmlelement(name a)",
            "SELECT FROM t GROUP BY GROUPING SETS ((a), (b), ())",
            "SELECT E'\\n', U&'\\0061', $$a$$, 1_000, INTERVAL '1' day, INTERVAL '1 day', point '(1,2)', a.* AS b FROM t",
            "EXPLAIN (ANALYZE, VERBOSE FALSE) SELECT 1",
            "CREATE INDEX i ON t (a) WITH (fillfactor = 70)",
            "COMMENT ON TABLE t IS 'x'",
            "LOAD 'x'",
            "SET NAMES 'x'",
            "ALTER TABLE t ALTER COLUMN a TYPE int USING a::int",
            "INSERT INTO t AS u VALUES (1)",
            "CREATE TABLE t (LIKE u INCLUDING ALL)",
            "NOTIFY c, 'x'",
            "SELECT a OPERATOR(pg_catalog.+) b, a @> b, a &&& b, a IS NULL AND b BETWEEN 1 AND 2 OR NOT c = d",
        ];
        for text in texts {
            let parse = |dialect: &dyn Dialect| {
                Parser::new(dialect).try_with_sql(text).and_then(|mut parser| parser.parse_statement())
            };
            assert_eq!(parse(&Bounded::new(1_000, 8)), parse(&PostgreSqlDialect {}), "{text}");
        }
    }
}
