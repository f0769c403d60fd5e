//! How much a text may ask of the parser.

/// The most that a text may be. What these forbid is refused before it takes time or stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseLimits {
    /// Bytes of the whole text.
    pub statement_bytes_max: usize,
    /// Bytes of one statement of SQL, whose tokens take some 90 bytes each, a blank being one.
    pub query_bytes_max: usize,
    /// How deep brackets may nest. All other limits on the tree and on the work of reading it follow from this one.
    pub depth_max: usize,
}

impl ParseLimits {
    /// The highest that are safe: threads have 2 MiB of stack.
    pub const HIGHEST: Self =
        Self { statement_bytes_max: 16 << 20, query_bytes_max: 1 << 20, depth_max: Self::DEPTH_MAX };

    const DEPTH_MAX: usize = 40;

    /// The same, none of them above the highest.
    pub(crate) fn safe(self) -> Self {
        Self {
            statement_bytes_max: self.statement_bytes_max.min(Self::HIGHEST.statement_bytes_max),
            query_bytes_max: self.query_bytes_max.min(Self::HIGHEST.query_bytes_max),
            depth_max: self.depth_max.min(Self::DEPTH_MAX),
        }
    }

    /// How deep sqlparser may call itself: 50, its own default, at the highest.
    pub(crate) fn recursion_max(self) -> usize {
        self.depth_max + 10
    }

    /// How deep a tree may become by chaining (`a + b + c`, `a OR b OR c`), which sqlparser does in a loop, without a
    /// limit, while cloning, comparing and dropping the tree recurse. In a build without optimisation a clone takes some
    /// 5 KiB of stack for each level of an expression and 20 KiB for each UNION.
    pub(crate) fn chain_max(self) -> usize {
        16 * self.depth_max
    }

    /// How many statements one may hold, itself included, as EXPLAIN and PREPARE hold one. Reading a statement takes so
    /// much stack that the limit on recursion comes too late.
    pub(crate) fn statements_max(self) -> usize {
        self.depth_max / 5
    }

    /// How many expressions sqlparser may begin in a statement of so many tokens. Ordinary ones begin not even one for
    /// each token; a call within eight others begins some thousand.
    pub(crate) fn expressions_max(self, tokens: usize) -> usize {
        500 * self.depth_max + 4 * tokens
    }
}

impl Default for ParseLimits {
    fn default() -> Self {
        Self::HIGHEST
    }
}
