//! Expressions and queries made by chance, the same ones every time.

/// How many are made.
const COUNT: usize = 400;
const SEED: u64 = 0x5377_6974_6368_7961;

/// A sequence of numbers that looks like chance (xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % limit
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices.get(self.below(choices.len())).copied().unwrap_or_default()
    }

    /// A whole number; with columns of `nodes n` and `network_addresses a` where there are some.
    fn integer(&mut self, depth: usize, columns: bool) -> String {
        if depth == 0 {
            return match self.below(if columns { 4 } else { 3 }) {
                0 => self.below(10).to_string(),
                1 => format!("(-{})", self.below(1000)),
                2 => self.pick(&["3000000000", "12::int8", "7::int2", "NULL::int4", "'5'::int4"]).to_owned(),
                _ => self.pick(&["a.port", "a.port - 5000", "length(n.node_name)"]).to_owned(),
            };
        }
        let left = self.integer(depth - 1, columns);
        match self.below(8) {
            0 | 1 => format!("({left} {} {})", self.pick(&["+", "-"]), self.integer(depth - 1, columns)),
            2 => format!("({left} * {})", self.below(9)),
            3 => format!("({left} {} {})", self.pick(&["/", "%"]), 1 + self.below(9)),
            4 => format!("abs({left})"),
            5 => format!("coalesce({left}, {})", self.integer(depth - 1, columns)),
            6 => {
                let (condition, other) = (self.truth(depth - 1, columns), self.integer(depth - 1, columns));
                format!("CASE WHEN {condition} THEN {left} ELSE {other} END")
            }
            _ => format!("length({})", self.text(depth - 1, columns)),
        }
    }

    fn text(&mut self, depth: usize, columns: bool) -> String {
        if depth == 0 {
            return match self.below(if columns { 3 } else { 2 }) {
                0 => self.pick(&["'abc'::text", "'n1'::text", "''::text", "'Ab c'::text", "'äö'::text"]).to_owned(),
                1 => self.pick(&["NULL::text", "'x_y%'::text", "'it''s'::text"]).to_owned(),
                _ => self.pick(&["n.node_name::text", "a.name::text", "n.subcluster_name::text"]).to_owned(),
            };
        }
        let inner = self.text(depth - 1, columns);
        match self.below(8) {
            0 => format!("({inner} || {})", self.text(depth - 1, columns)),
            1 => format!("{}({inner})", self.pick(&["upper", "lower", "reverse", "btrim", "md5"])),
            2 => format!("{}({inner}, {})", self.pick(&["left", "right"]), self.below(5)),
            3 => format!("substr({inner}, {}, {})", 1 + self.below(4), self.below(4)),
            4 => format!("replace({inner}, 'a', 'bb')"),
            5 => format!("{}({inner}, {}, 'xy')", self.pick(&["lpad", "rpad"]), self.below(7)),
            6 => format!("coalesce({inner}, {})", self.text(depth - 1, columns)),
            _ => format!("({})::text", self.integer(depth - 1, columns)),
        }
    }

    fn truth(&mut self, depth: usize, columns: bool) -> String {
        if depth == 0 {
            return match self.below(if columns { 3 } else { 2 }) {
                0 => self.pick(&["true", "false", "NULL::bool", "'t'::bool"]).to_owned(),
                1 => format!("{} {} {}", self.below(9), self.pick(&["<", "=", "<>", ">="]), self.below(9)),
                _ => self.pick(&["n.is_primary", "a.port > 5440", "n.node_name = a.node", "a.name IS NULL"]).to_owned(),
            };
        }
        match self.below(8) {
            0 | 1 => {
                let left = self.truth(depth - 1, columns);
                format!("({left} {} {})", self.pick(&["AND", "OR"]), self.truth(depth - 1, columns))
            }
            2 => format!("(NOT {})", self.truth(depth - 1, columns)),
            3 => {
                let left = self.integer(depth - 1, columns);
                format!("({left} {} {})", self.pick(&["<", "<=", "=", "<>", ">"]), self.integer(depth - 1, columns))
            }
            4 => format!(
                "({} {} '{}')",
                self.text(depth - 1, columns),
                self.pick(&["LIKE", "NOT LIKE", "ILIKE"]),
                self.pick(&["%a%", "_b%", "n_", "x\\_y%"])
            ),
            5 => format!("({} BETWEEN {} AND {})", self.integer(depth - 1, columns), self.below(5), 5 + self.below(50)),
            6 => format!(
                "({} {} (1, 5, {}))",
                self.integer(depth - 1, columns),
                self.pick(&["IN", "NOT IN"]),
                self.below(99)
            ),
            _ => format!(
                "({} IS {})",
                self.text(depth - 1, columns),
                self.pick(&["NULL", "NOT NULL", "DISTINCT FROM 'abc'"])
            ),
        }
    }

    fn moment(&mut self) -> String {
        let time =
            self.pick(&["2024-01-31 12:34:56", "2024-02-29 00:00:00", "1999-12-31 23:59:59.5", "2030-07-04 06:07:08"]);
        let span = self.pick(&["1 day", "1 month", "-2 hours", "1 year 3 days", "90 minutes"]);
        match self.below(7) {
            0 => format!("timestamp '{time}' {} interval '{span}'", self.pick(&["+", "-"])),
            1 => format!(
                "date_trunc('{}', timestamp '{time}')",
                self.pick(&["hour", "day", "week", "month", "quarter", "year"])
            ),
            2 => format!(
                "extract({} from timestamp '{time}')",
                self.pick(&["year", "month", "dow", "doy", "week", "epoch", "second"])
            ),
            3 => format!("interval '{span}' * {}", self.below(5)),
            4 => format!(
                "to_char(timestamp '{time}', '{}')",
                self.pick(&["YYYY-MM-DD", "HH24:MI:SS", "Day DD Mon", "Q IW", "FMMonth DDth"])
            ),
            5 => format!("(timestamp '{time}')::date - date '2020-01-0{}'", 1 + self.below(9)),
            _ => format!(
                "timestamptz '{time}+02' AT TIME ZONE '{}'",
                self.pick(&["UTC", "Europe/Berlin", "America/New_York"])
            ),
        }
    }

    fn query(&mut self) -> String {
        match self.below(8) {
            0 => format!("SELECT {} AS x", self.integer(3, false)),
            1 => format!("SELECT {} AS x, {} AS y", self.text(2, false), self.truth(2, false)),
            2 => format!("SELECT {} AS x", self.moment()),
            3 => format!(
                "SELECT {} AS x FROM nodes n, network_addresses a WHERE {}",
                self.integer(2, true),
                self.truth(2, true)
            ),
            4 => format!(
                "SELECT n.node_name, {} AS x FROM nodes n LEFT JOIN network_addresses a ON a.node = n.node_name",
                self.text(2, true)
            ),
            5 => format!(
                "SELECT n.subcluster_name, count(*), min({}), max(a.port) FROM nodes n JOIN network_addresses a ON {} GROUP BY n.subcluster_name",
                self.text(1, true),
                self.truth(1, true)
            ),
            6 => format!("SELECT count(*) FROM nodes n, network_addresses a WHERE {}", self.truth(3, true)),
            _ => format!("SELECT DISTINCT {} AS x FROM nodes n, network_addresses a", self.truth(2, true)),
        }
    }
}

/// The queries.
pub fn queries() -> Vec<String> {
    let mut chance = Chance(SEED);
    (0..COUNT).map(|_| chance.query()).collect()
}
