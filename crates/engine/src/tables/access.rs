//! `switchyard`: who gets in, and through what.

use switchyard_catalog::{Authentication, AuthenticationAccess, AuthenticationClient, AuthenticationReason, TlsDemand};

use super::{Cell, Column, Kind, Rows, RowsError, SystemTable, Visibility, column};
use crate::snapshot::Snapshot;

/// The columns of the function `test_authentication(address, user, tls)`.
pub(crate) const TEST_AUTHENTICATION: &[Column] = &[
    column("position", Kind::Int, "The order in which the records are considered, from 1."),
    column("auth_oid", Kind::Int, "The record's id; NULL where none decides."),
    column("auth_name", Kind::Varchar, "The record's name; NULL where none decides."),
    column("auth_method", Kind::Varchar, "TRUST, REJECT, HASH or TLS."),
    column("auth_host_type", Kind::Varchar, "LOCAL, HOST, HOSTSSL or HOSTNOSSL."),
    column("auth_host_address", Kind::Varchar, "The client network, as typed."),
    column("auth_priority", Kind::Int, "The greater wins."),
    column("address_priority", Kind::Int, "Bits of the network: the greater is more specific."),
    column("decides", Kind::Bool, "Whether this is the record, or the answer, that the client meets first."),
    column("reason", Kind::Varchar, "Why it decides, or why not."),
];

pub(super) const TABLES: &[SystemTable] = &[SystemTable {
    schema: "switchyard",
    name: "tls_certificates",
    description: "The certificate that the answering member shows to clients; no row without TLS.",
    columns: &[
        column("certificate_path", Kind::Varchar, "Its file."),
        column("subject", Kind::Varchar, "The subject, the most specific part first."),
        column("issuer", Kind::Varchar, "The authority that signed it."),
        column("serial", Kind::Varchar, "The serial number in hex."),
        column("names", Kind::Varchar, "Common and alternative names but IP addresses, joined by commas."),
        column("not_before", Kind::Timestamptz, "When it begins to hold."),
        column("not_after", Kind::Timestamptz, "When it ceases to hold."),
        column("client_ca_path", Kind::Varchar, "The file of the authorities for client certificates, if any."),
        column("load_time", Kind::Timestamptz, "When it was loaded."),
        column("load_failure", Kind::Varchar, "Why the files as they are now were not loaded; NULL when they were."),
    ],
    visibility: Visibility::Superuser,
    rows: tls_certificates,
}];

fn tls_certificates(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let Some(certificate) = &snapshot.live.certificate else { return Ok(()) };
    rows.push([
        certificate.path.as_str().into(),
        certificate.subject.as_str().into(),
        certificate.issuer.as_str().into(),
        certificate.serial.as_str().into(),
        certificate.names.join(",").into(),
        Cell::Time(certificate.not_before_us),
        Cell::Time(certificate.not_after_us),
        certificate.client_ca.as_deref().into(),
        Cell::Time(certificate.loaded_us),
        certificate.failure.as_deref().into(),
    ])
}

/// The rows of `test_authentication(address, user, tls)`.
pub(super) fn test_authentication(
    snapshot: &Snapshot,
    client: AuthenticationClient,
    user: &str,
    rows: &mut Rows,
) -> Result<(), RowsError> {
    let decision = snapshot.catalog.decide_authentication(client, user);
    let attempts: Vec<_> = decision.attempts().map(|record| record.id).collect();
    let mut position = 0i64;
    if decision.record.is_none() {
        position += 1;
        let (method, reason) = match decision.in_vain {
            true => (
                Some("HASH"),
                "no record is for this login, but one is for others from there: a password is asked for in vain, so that \
                 nobody learns which users there are",
            ),
            false => (None, "no record is for this login: it is refused"),
        };
        let (none, no_number) = (None::<&str>, None::<i64>);
        rows.push([
            position.into(),
            no_number.into(),
            none.into(),
            method.into(),
            none.into(),
            none.into(),
            no_number.into(),
            no_number.into(),
            true.into(),
            reason.into(),
        ])?;
    }
    let matching =
        |reason: AuthenticationReason| matches!(reason, AuthenticationReason::Chosen | AuthenticationReason::Outranked);
    let mut before: Option<&Authentication> = None;
    for (index, (record, reason)) in decision.considered.iter().enumerate() {
        position += 1;
        let next = decision.considered.get(index + 1).filter(|(_, reason)| matching(*reason)).map(|(record, _)| record);
        let text = match reason {
            AuthenticationReason::Chosen => chosen(record, next.map(AsRef::as_ref)),
            AuthenticationReason::Outranked if attempts.contains(&record.id) => {
                format!("tried when {} fails, which has FALLTHROUGH", before.map_or("", |record| record.name.as_str()))
            }
            other => passed_over(record, *other, client, user),
        };
        let (host_type, network, bits) = described(record);
        rows.push([
            position.into(),
            record.id.as_i64().into(),
            record.name.as_str().into(),
            record.method.as_str().to_uppercase().into(),
            host_type.into(),
            network.into(),
            record.priority.into(),
            bits.into(),
            (*reason == AuthenticationReason::Chosen).into(),
            text.into(),
        ])?;
        before = Some(record);
    }
    Ok(())
}

/// Type of connection, network, bits of its prefix.
pub(super) fn described(record: &Authentication) -> (&'static str, Option<&str>, i64) {
    match &record.access {
        AuthenticationAccess::Local => ("LOCAL", None, 0),
        AuthenticationAccess::Host { network, tls } => {
            let host_type = match tls {
                TlsDemand::Any => "HOST",
                TlsDemand::Required => "HOSTSSL",
                TlsDemand::Forbidden => "HOSTNOSSL",
            };
            (host_type, Some(network.typed.as_str()), i64::from(network.net.prefix_len()))
        }
    }
}

/// Why a record decides: what sets it apart from the next one that matches.
fn chosen(record: &Authentication, next: Option<&Authentication>) -> String {
    let Some(next) = next else { return "the only record for this login".to_owned() };
    let (bits, bits_next) = (described(record).2, described(next).2);
    if record.priority > next.priority {
        format!("priority {} is above {} of {}", record.priority, next.priority, next.name)
    } else if bits > bits_next {
        format!("of equal priority, but more specific than {}: {bits} bits against {bits_next}", next.name)
    } else {
        format!("of equal priority and equally specific, but older than {}", next.name)
    }
}

/// Why a record does not decide.
fn passed_over(
    record: &Authentication,
    reason: AuthenticationReason,
    client: AuthenticationClient,
    user: &str,
) -> String {
    let (host_type, network, _) = described(record);
    let network = network.unwrap_or_default();
    match reason {
        AuthenticationReason::Chosen | AuthenticationReason::Outranked => "another record goes before it".to_owned(),
        AuthenticationReason::NotGranted => {
            format!("granted neither to user \"{user}\", nor to a role of his, nor to PUBLIC")
        }
        AuthenticationReason::OtherAccess => match (client.address, host_type) {
            (None, _) => "for clients over the network".to_owned(),
            (Some(_), "LOCAL") => "for the Unix socket".to_owned(),
            (Some(address), _) => format!("{address} is not in {network}"),
        },
        AuthenticationReason::OtherTls if client.tls => "for clients without TLS".to_owned(),
        AuthenticationReason::OtherTls => "for clients with TLS".to_owned(),
        AuthenticationReason::Disabled => "disabled".to_owned(),
    }
}
