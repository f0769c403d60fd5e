//! Addresses of `inet` and `cidr`, which are kept as texts: in which order they come, and their parts.

use std::net::IpAddr;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use ipnet::IpNet;

use super::declared::{Call, Declared};
use crate::error::SqlState;
use crate::sql::error::QueryError;
use crate::sql::json_text;
use crate::sql::kinds::is_text;

type Result<T> = std::result::Result<T, QueryError>;

/// A text that comes in the order of its address: IPv4 first, then by the network, the length of its prefix, the host.
pub(in crate::sql) const ADDRESS_KEY: Declared = Declared {
    name: "order of address",
    arguments: &[1],
    gives: of_text,
    answer: |call| {
        let (host, bits) = address(text(call))?;
        let network = IpNet::new(host, bits).map_err(|_| wrong(text(call)))?.network();
        let hexadecimal = |address: IpAddr| match address {
            IpAddr::V4(address) => format!("4{:08x}", u32::from(address)),
            IpAddr::V6(address) => format!("6{:032x}", u128::from(address)),
        };
        Ok(ScalarValue::Utf8(Some(format!("{}{bits:03}{}", hexadecimal(network), hexadecimal(host)))))
    },
    stable: false,
};

/// A text that is alike for equal values of `jsonb`.
pub(in crate::sql) const JSONB_KEY: Declared = Declared {
    name: "value of jsonb",
    arguments: &[1],
    gives: of_text,
    answer: |call| Ok(ScalarValue::Utf8(Some(json_text::key(text(call))?))),
    stable: false,
};

/// The functions by the names that clients call them by.
pub(super) const FUNCTIONS: &[Declared] = &[
    Declared {
        name: "network_sub",
        arguments: &[2],
        gives: of_truth,
        answer: |call| compared(call, |one, other| one.1 > other.1 && contains(other, one)),
        stable: false,
    },
    Declared {
        name: "network_sup",
        arguments: &[2],
        gives: of_truth,
        answer: |call| compared(call, |one, other| other.1 > one.1 && contains(one, other)),
        stable: false,
    },
    Declared {
        name: "network_subeq",
        arguments: &[2],
        gives: of_truth,
        answer: |call| compared(call, |one, other| contains(other, one)),
        stable: false,
    },
    Declared {
        name: "network_supeq",
        arguments: &[2],
        gives: of_truth,
        answer: |call| compared(call, contains),
        stable: false,
    },
    Declared {
        name: "host",
        arguments: &[1],
        gives: of_text,
        answer: |call| Ok(ScalarValue::Utf8(Some(address(text(call))?.0.to_string()))),
        stable: false,
    },
    Declared {
        name: "masklen",
        arguments: &[1],
        gives: of_number,
        answer: |call| Ok(ScalarValue::Int32(Some(address(text(call))?.1.into()))),
        stable: false,
    },
    Declared {
        name: "family",
        arguments: &[1],
        gives: of_number,
        answer: |call| Ok(ScalarValue::Int32(Some(if address(text(call))?.0.is_ipv4() { 4 } else { 6 }))),
        stable: false,
    },
];

fn of_text(kinds: &[DataType], _: &[Option<&ScalarValue>]) -> Option<DataType> {
    kinds.iter().all(|kind| is_text(kind) || kind.is_null()).then_some(DataType::Utf8)
}

fn of_number(kinds: &[DataType], _: &[Option<&ScalarValue>]) -> Option<DataType> {
    kinds.iter().all(|kind| is_text(kind) || kind.is_null()).then_some(DataType::Int32)
}

fn of_truth(kinds: &[DataType], _: &[Option<&ScalarValue>]) -> Option<DataType> {
    kinds.iter().all(|kind| is_text(kind) || kind.is_null()).then_some(DataType::Boolean)
}

/// Two networks compared; each is a host and the length of its prefix.
fn compared(call: &Call<'_>, is: fn((IpAddr, u8), (IpAddr, u8)) -> bool) -> Result<ScalarValue> {
    let [one, other] = call.values else { return Ok(ScalarValue::Boolean(None)) };
    let read = |value: &ScalarValue| address(value.try_as_str().flatten().unwrap_or_default());
    Ok(ScalarValue::Boolean(Some(is(read(one)?, read(other)?))))
}

/// Whether the first network contains the second, or is it.
fn contains(outer: (IpAddr, u8), inner: (IpAddr, u8)) -> bool {
    let network = IpNet::new(outer.0, outer.1);
    inner.1 >= outer.1 && network.is_ok_and(|network| network.contains(&inner.0))
}

fn text<'a>(call: &'a Call<'_>) -> &'a str {
    call.values.first().and_then(|value| value.try_as_str().flatten()).unwrap_or_default()
}

fn wrong(text: &str) -> QueryError {
    QueryError::new(SqlState::InvalidTextRepresentation, format!("invalid input syntax for type inet: \"{text}\""))
}

/// The host and the length of its prefix.
fn address(text: &str) -> Result<(IpAddr, u8)> {
    let (host, bits) = match text.trim().split_once('/') {
        Some((host, bits)) => (host, Some(bits.parse().map_err(|_| wrong(text))?)),
        None => (text.trim(), None),
    };
    let host: IpAddr = host.parse().map_err(|_| wrong(text))?;
    Ok((host, bits.unwrap_or(if host.is_ipv4() { 32 } else { 128 })))
}
