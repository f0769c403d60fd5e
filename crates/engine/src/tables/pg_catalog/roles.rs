//! Users and roles: PostgreSQL has one kind for both.

use std::collections::BTreeMap;

use switchyard_catalog::{Catalog, Grantee, SettingLevel, User};

use super::objects::{database_oid, role_oid, user_oid};
use crate::snapshot::Snapshot;
use crate::tables::{Cell, Rows, RowsError};

fn connection_limit(user: &User) -> i64 {
    user.limits.max_connections.as_ref().map_or(-1, |(most, _)| i64::from(*most))
}

pub(super) fn roles(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    each(&snapshot.catalog, |role| {
        rows.push([
            role.name.into(),
            role.superuser.into(),
            true.into(),
            role.superuser.into(),
            role.superuser.into(),
            role.login.into(),
            role.superuser.into(),
            role.limit.into(),
            role.login.then_some("********").into(),
            Cell::Null,
            role.superuser.into(),
            Cell::Null,
            role.oid.into(),
        ])
    })
}

/// A user or a role, as PostgreSQL sees it.
struct RoleRow<'a> {
    oid: u32,
    name: &'a str,
    superuser: bool,
    login: bool,
    limit: i64,
}

fn each(catalog: &Catalog, mut push: impl FnMut(RoleRow<'_>) -> Result<(), RowsError>) -> Result<(), RowsError> {
    for user in catalog.users().iter() {
        push(RoleRow {
            oid: user_oid(user.id),
            name: user.name.as_str(),
            superuser: user.superuser,
            login: !user.locked,
            limit: connection_limit(user),
        })?;
    }
    for role in catalog.roles().iter() {
        let (oid, name) = (role_oid(role.id), role.name.as_str());
        push(RoleRow { oid, name, superuser: false, login: false, limit: -1 })?;
    }
    Ok(())
}

pub(super) fn authid(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    each(&snapshot.catalog, |role| {
        rows.push([
            role.oid.into(),
            role.name.into(),
            role.superuser.into(),
            true.into(),
            role.superuser.into(),
            role.superuser.into(),
            role.login.into(),
            role.superuser.into(),
            role.superuser.into(),
            role.limit.into(),
            Cell::Null,
            Cell::Null,
        ])
    })
}

pub(super) fn user(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for user in snapshot.catalog.users().iter() {
        rows.push([
            user.name.as_str().into(),
            user_oid(user.id).into(),
            user.superuser.into(),
            user.superuser.into(),
            user.superuser.into(),
            user.superuser.into(),
            "********".into(),
            Cell::Null,
            Cell::Null,
        ])?;
    }
    Ok(())
}

/// The number of a grantee.
fn grantee_oid(grantee: Grantee) -> u32 {
    match grantee {
        Grantee::User(user) => user_oid(user),
        Grantee::Role(role) => role_oid(role),
    }
}

pub(super) fn group(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for role in snapshot.catalog.roles().iter() {
        let grants = snapshot.catalog.role_grants().iter().filter(|grant| grant.role == role.id);
        let members: Vec<i64> = grants.map(|grant| i64::from(grantee_oid(grant.grantee))).collect();
        rows.push([role.name.as_str().into(), role_oid(role.id).into(), members.into()])?;
    }
    Ok(())
}

pub(super) fn auth_members(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for grant in snapshot.catalog.role_grants().iter() {
        rows.push([
            role_oid(grant.role).into(),
            grantee_oid(grant.grantee).into(),
            user_oid(grant.grantor).into(),
            grant.admin.into(),
        ])?;
    }
    Ok(())
}

pub(super) fn db_role_setting(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let catalog = &snapshot.catalog;
    let mut by_owner: BTreeMap<(u32, u32), Vec<String>> = BTreeMap::new();
    for setting in catalog.settings().iter() {
        let owner = match setting.level {
            SettingLevel::Database => (database_oid(catalog), 0),
            SettingLevel::User(user) => (0, user_oid(user)),
            SettingLevel::Node(_) => continue,
        };
        let hidden =
            crate::settings::declaration(&setting.name).is_ok_and(|own| own.superuser) && !snapshot.superuser();
        let value = if hidden { crate::show::MASK } else { setting.value.as_str() };
        by_owner.entry(owner).or_default().push(format!("{}={value}", setting.name));
    }
    for ((database, role), settings) in by_owner {
        rows.push([database.into(), role.into(), settings.into()])?;
    }
    Ok(())
}
