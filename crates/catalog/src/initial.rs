//! The first catalog.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::apply::Draft;
use crate::catalog::{Catalog, Delta};
use crate::entity::*;
use crate::id::*;
use crate::name::Name;

/// The role that everybody has.
pub const PUBLIC_ROLE: &str = "PUBLIC";

/// The roles that every catalog has from the start, and for ever (`reference/vertica-sql.md` §4.3).
pub const PREDEFINED_ROLES: [&str; 7] =
    [PUBLIC_ROLE, "DBADMIN", "PSEUDOSUPERUSER", "DBDUSER", "SYSMONITOR", "UDXDEVELOPER", "MLSUPERVISOR"];

/// Those of them that are the superuser's own: never revoked from it, and always on.
pub const SUPERUSER_ROLES: [&str; 3] = ["DBADMIN", "PSEUDOSUPERUSER", "DBDUSER"];

/// Those of them that stand for its rights: nobody else can be given them.
pub(crate) const RIGHTS_OF_SUPERUSER: [&str; 2] = ["DBADMIN", "PSEUDOSUPERUSER"];

/// The subcluster that nodes go to, until another is made the default.
pub const FIRST_SUBCLUSTER: &str = "default_subcluster";

impl Catalog {
    /// The catalog of a new cluster, of version 0, and the deltas that make it from nothing: the database, one primary
    /// subcluster, the superuser, the predefined roles, and authentication records that ask everybody for a password
    /// (`design.md` §4 step 4: no trust unless somebody granted it). There is no table group yet.
    pub fn initial(database: Name, superuser: Name, verifiers: Option<Verifiers>) -> (Self, Vec<Delta>) {
        let subcluster = SubclusterId(ID_FIRST.saturating_add(1));
        let mut draft = Draft::new(&Self::bare(Database {
            id: ID_FIRST,
            name: database,
            policy: Policy::None,
            export_subnet: None,
            default_subcluster: subcluster,
            default_table_group: None,
            member_secret: None,
        }));
        let _: u64 = draft.next_id();
        let id = draft.next_id();
        draft.put(Subcluster { id, name: Name::known(FIRST_SUBCLUSTER), primary: true });
        let superuser = put_superuser(&mut draft, superuser, verifiers);
        put_roles(&mut draft, superuser);
        put_authentications(&mut draft);
        let applied = draft.finish();
        let database = Delta { before: None, after: Some(applied.catalog.database().clone().into()) };
        let deltas = std::iter::once(database).chain(applied.deltas).collect();
        (applied.catalog, deltas)
    }

    /// The role that everybody has.
    pub fn public_role(&self) -> Option<RoleId> {
        self.roles.named(&Name::known(PUBLIC_ROLE)).map(|role| role.id)
    }
}

fn put_superuser(draft: &mut Draft, name: Name, verifiers: Option<Verifiers>) -> UserId {
    let id = draft.next_id();
    draft.put(User {
        id,
        name,
        superuser: true,
        verifiers,
        locked: false,
        password_expired: false,
        default_roles: DefaultRoles::None,
        limits: UserLimits::default(),
    });
    id
}

fn put_roles(draft: &mut Draft, superuser: UserId) {
    for name in PREDEFINED_ROLES {
        let role = draft.next_id();
        draft.put(Role { id: role, name: Name::known(name), predefined: true });
        if SUPERUSER_ROLES.contains(&name) {
            let id = draft.next_id();
            draft.put(RoleGrant { id, role, grantee: Grantee::User(superuser), admin: true, grantor: superuser });
        }
    }
}

fn put_authentications(draft: &mut Draft) {
    let host = |typed: &str, net: IpNet| AuthenticationAccess::Host {
        network: Network { typed: typed.to_owned(), net },
        tls: TlsDemand::Any,
    };
    let records = [
        ("default_local", AuthenticationAccess::Local),
        ("default_host_v4", host("0.0.0.0/0", IpNet::V4(Ipv4Net::default()))),
        ("default_host_v6", host("::/0", IpNet::V6(Ipv6Net::default()))),
    ];
    for (name, access) in records {
        let authentication = draft.next_id();
        draft.put(Authentication {
            id: authentication,
            name: Name::known(name),
            method: AuthenticationMethod::Hash,
            access,
            enabled: true,
            priority: 0,
            fallthrough: false,
            parameters: Vec::new(),
        });
        if let Some(public) = draft.catalog.public_role() {
            let id = draft.next_id();
            draft.put(AuthenticationGrant { id, authentication, grantee: Grantee::Role(public) });
        }
    }
}
