//! `switchyard`: who gets in, and through what.

use super::{Cell, Kind, Rows, RowsError, SystemTable, Visibility, column};
use crate::snapshot::Snapshot;

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
