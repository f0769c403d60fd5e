//! The types of results and parameters (`reference/vertica-wire.md` §4.11). Their ids mean other types in PostgreSQL.

/// A type as RowDescription and ParameterDescription tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type {
    /// Its id.
    pub id: u32,
    /// The bytes of a value; negative when that varies.
    pub size: i16,
    /// What narrows it, for example its length; negative when nothing is known.
    pub modifier: i32,
    /// Whether values can be had in binary.
    pub has_binary: bool,
}

impl Type {
    /// A truth.
    pub const BOOLEAN: Self = Self::fixed(5, 1);
    /// An integer of 64 bits, the only width there is.
    pub const INTEGER: Self = Self::fixed(6, 8);
    /// Double precision, the only one there is.
    pub const FLOAT: Self = Self::fixed(7, 8);
    /// Text of at most 65,000 bytes.
    pub const VARCHAR: Self = Self::fixed(9, -1);
    /// Text of any length.
    pub const LONG_VARCHAR: Self = Self::fixed(115, -1);
    /// A day.
    pub const DATE: Self = Self::fixed(10, 8);
    /// A time without zone, to the microsecond.
    pub const TIMESTAMP: Self = Self::fixed(12, 8);
    /// A moment, to the microsecond.
    pub const TIMESTAMPTZ: Self = Self::fixed(13, 8);
    /// A span of time, from days to seconds.
    pub const INTERVAL: Self = Self::fixed(14, 8);
    /// A decimal number. Its binary form needs to know how many digits there are, and newer servers do without.
    pub const NUMERIC: Self = Self { has_binary: false, ..Self::fixed(16, -1) };
    /// Bytes.
    pub const VARBINARY: Self = Self::fixed(17, -1);

    const fn fixed(id: u32, size: i16) -> Self {
        Self { id, size, modifier: -1, has_binary: true }
    }

    /// 1 where values come in binary, 0 where they come as text.
    pub const fn format(self, binary: bool) -> i16 {
        if binary && self.has_binary { 1 } else { 0 }
    }
}
