//! The settings of the process: one declaration each, read by the flags, the variables, the file, `--help` and the
//! reference. A flag wins over a variable, a variable over the file, the file over the default.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use switchyard_catalog::{Name, NameError};
use switchyard_console::ProcessSetting;
use switchyard_session::{Limits, TlsOptions, TlsVersion};
use switchyard_store::{EtcdLink, EtcdOptions, EtcdTls};

mod declaration;
mod fault;
mod file;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
mod value;

use self::declaration::settings;
pub(crate) use self::declaration::{Command, Declaration, DefaultValue, Source};
pub(crate) use self::fault::{Fault, Located, Place};
pub(crate) use self::value::{
    Bounded, Endpoints, HostPort, KeyPrefix, LogFilter, LogFormat, Networks, Password, Shape, StoreKind, Upstream,
};

settings! {
    /// The TOML file that settings are read from. No file is read unless one is named.
    config: Option<PathBuf>, from [Flag Variable], for [Quickstart Serve Check Dump], absent "none";
    /// The name of this node in the catalog.
    node: Option<Name>, from [Flag Variable File], for [Serve], absent "`v_<database>_node0001`";
    /// The IP address and port to listen on; may be given several times. Port 0 picks a free one.
    listen: Vec<SocketAddr>, from [Flag Variable File], for [Serve], text "127.0.0.1:5433";
    /// The port of the first of three members; the others take the next two. 0 picks free ones.
    port: Bounded<0, 65_533>, from [Flag Variable File], for [Quickstart], text "5433";
    /// The directory of the embedded store, made with mode 0700 when it is missing. The quickstart has one of its own,
    /// `switchyard-quickstart`.
    data_dir: PathBuf, from [Flag Variable File], for [Quickstart Serve Dump], text "switchyard-data";
    /// Where the catalog is kept: `redb` in a file in the data directory, durable; `etcd` for several members, at the
    /// endpoints that `etcd` names, or as `etcd://HOST:PORT[,HOST:PORT]`; `memory` forgets it at the end.
    store: StoreKind, from [Flag Variable File], for [Quickstart Serve Check Dump], text "redb";
    /// The endpoints of etcd, with `store` `etcd`: `http://HOST:PORT`, or with TLS `https://HOST:PORT`; several with commas
    /// between. One that answers is enough.
    etcd: Endpoints, from [Flag Variable File], for [Serve Check Dump], absent "none";
    /// What the cluster's keys in etcd begin with: clusters with different ones share an etcd.
    etcd_prefix: KeyPrefix, from [Flag Variable File], for [Serve Check Dump], text "/switchyard";
    /// The PEM file of the authority that signed etcd's certificate. With it, TLS is spoken to etcd.
    etcd_ca: Option<PathBuf>, from [Flag Variable File], for [Serve Check Dump], absent "none";
    /// The PEM file of the certificate that is shown to etcd.
    etcd_certificate: Option<PathBuf>, from [Flag Variable File], for [Serve Check Dump], absent "none";
    /// The PEM file of that certificate's private key.
    etcd_key: Option<PathBuf>, from [Flag Variable File], for [Serve Check Dump], absent "none";
    /// The user to log in to etcd as.
    etcd_user: Option<Name>, from [Flag Variable File], for [Serve Check Dump], absent "none";
    /// That user's password.
    etcd_password: Option<Password>, from [Variable File], for [Serve Check Dump], absent "none";
    /// How long a request to etcd may take, in milliseconds, all endpoints included.
    etcd_time_ms_max: Bounded<100, 60_000>, from [Flag Variable File], for [Serve Check Dump], text "2000";
    /// How long a member that does not show a sign of life is taken to be up, in seconds. etcd measures the time, and does
    /// not go below one and a half of its election timeouts.
    member_lease_s: Bounded<1, 600>, from [Flag Variable File], for [Serve], text "3";
    /// The host and port that others reach this node at.
    advertise: Option<HostPort>, from [Flag Variable File], for [Serve], absent "the first address listened on";
    /// The PostgreSQL server this node fronts: sessions on all databases but the console's run there, or where their
    /// workload leads. Parameters are libpq's `sslmode`, `sslrootcert`, `sslcert` and `sslkey`. Users log in as themselves.
    upstream: Option<Upstream>, from [Flag Variable File], for [Serve], absent "none";
    /// How long a PostgreSQL server may take to take a login, in milliseconds.
    upstream_login_ms_max: Bounded<100, 600_000>, from [Flag Variable File], for [Quickstart Serve], text "10000";
    /// How many sessions on PostgreSQL servers each thread that serves them keeps when their clients have gone, for the next
    /// clients that would log in alike. With 0 each client has one of its own.
    upstream_idle_max: Bounded<0, 10_000>, from [Flag Variable File], for [Quickstart Serve], text "20";
    /// How long such a session is kept, in milliseconds.
    upstream_idle_ms_max: Bounded<0, 86_400_000>, from [Flag Variable File], for [Quickstart Serve], text "60000";
    /// How many threads move the messages of sessions that run on PostgreSQL servers. 0 is one for each two cores.
    relay_threads: Bounded<0, 256>, from [Flag Variable File], for [Quickstart Serve], text "0";
    /// The subcluster this node joins.
    subcluster: Option<Name>, from [Flag Variable File], for [Serve], absent "`default_subcluster`";
    /// The IP address and port of the HTTP endpoint: `/metrics` for Prometheus, `/healthz` while the process lives, `/readyz`
    /// while it takes connections. Whoever reaches it may read it. Port 0 picks a free one, which the log tells.
    http: Vec<SocketAddr>, from [Flag Variable File], for [Serve], absent "none";
    /// The name of the database, taken when the catalog is first made.
    database: Name, from [Flag Variable File], for [Serve], text "switchyard";
    /// The password of `dbadmin`, taken when the catalog is first made. Without it one is generated and written to
    /// `dbadmin.password` in the data directory, readable by the owner only.
    password: Option<Password>, from [Variable], for [Serve], absent "generated";
    /// What is logged to standard error: a level (`error`, `warn`, `info`, `debug`, `trace`), or several
    /// `target=level` with commas between.
    log: LogFilter, from [Flag Variable File], for [Quickstart Serve], text "info";
    /// How log lines look: `text` or `json`.
    log_format: LogFormat, from [Flag Variable File], for [Quickstart Serve], text "text";
    /// The PEM file of the certificate shown to clients, and of those that lead to its authority. With it and `tls_key`,
    /// TLS is spoken. Read again when it changes.
    tls_certificate: Option<PathBuf>, from [Flag Variable File], for [Quickstart Serve Check], absent "none";
    /// The PEM file of that certificate's private key. Others than its owner and its group must not be allowed to read it.
    tls_key: Option<PathBuf>, from [Flag Variable File], for [Quickstart Serve Check], absent "none";
    /// The PEM file of the authorities whose client certificates are accepted. Without it, clients are asked for none.
    tls_client_ca: Option<PathBuf>, from [Flag Variable File], for [Quickstart Serve Check], absent "none";
    /// The lowest version of TLS spoken: `1.2` or `1.3`.
    tls_version_min: TlsVersion, from [Flag Variable File], for [Quickstart Serve Check], text "1.2";
    /// The networks that balancers are in, such as `10.0.0.0/8`: a PROXY protocol header that comes from there says who
    /// the client is. One that names nobody (`UNKNOWN`, `UNSPEC`, `LOCAL`) leaves the balancer's own address. From anywhere
    /// else a header is refused.
    proxy_networks: Networks, from [Flag Variable File], for [Quickstart Serve], absent "none";
    /// The most sessions at a time.
    connections_max: Bounded<1, 1_000_000>, from [Flag Variable File], for [Serve], text "10000";
    /// How many of `connections_max` are kept for superusers.
    connections_reserved: Bounded<0, 1_000_000>, from [Flag Variable File], for [Serve], text "3";
    /// The most logins under way at a time. When there is one more, the oldest is ended: whoever keeps connections half
    /// open keeps nobody out.
    logins_max: Bounded<1, 1_000_000>, from [Flag Variable File], for [Serve], text "1000";
    /// How long a client may take to log in, in milliseconds.
    login_time_ms_max: Bounded<100, 3_600_000>, from [Flag Variable File], for [Serve], text "60000";
    /// The longest startup packet, in bytes.
    startup_bytes_max: Bounded<1_000, 1_000_000>, from [Flag Variable File], for [Serve], text "10000";
    /// The longest message of a client that has logged in, in bytes. A message is kept whole until it is read: a statement,
    /// or the values of all its parameters.
    message_bytes_max: Bounded<65_536, 1_073_741_824>, from [Flag Variable File], for [Serve], text "16778240";
    /// How long the first failed login from an address waits for its answer, in milliseconds. Each further one waits
    /// twice as long.
    throttle_delay_ms_min: Bounded<0, 3_600_000>, from [Flag Variable File], for [Serve], text "100";
    /// How long a failed login waits for its answer at most, in milliseconds.
    throttle_delay_ms_max: Bounded<0, 3_600_000>, from [Flag Variable File], for [Serve], text "5000";
    /// How long after its last failed login an address is forgotten, in milliseconds.
    throttle_window_ms: Bounded<0, 86_400_000>, from [Flag Variable File], for [Serve], text "600000";
    /// How many addresses with failed logins are told apart.
    throttle_addresses_max: Bounded<1, 1_000_000>, from [Flag Variable File], for [Serve], text "10000";
    /// How long a start waits for the process that it replaces to end, in milliseconds: both listen on the same addresses
    /// meanwhile, and connections wait for the one that serves them. That one must have been started with it too. With 0,
    /// an address or a node that is in use is an error at once.
    takeover_ms_max: Bounded<0, 3_600_000>, from [Flag Variable File], for [Serve], text "0";
    /// How long sessions may go on after SIGTERM or SIGINT before they are closed, in milliseconds.
    drain_ms_max: Bounded<0, 3_600_000>, from [Flag Variable File], for [Serve], text "10000";
}

/// What is taken from one place for one setting.
#[derive(Debug, Clone)]
struct Given {
    place: Place,
    shape: Shape,
    texts: Vec<String>,
}

/// The flags as they were typed, by the setting's name.
pub(crate) type Flags = BTreeMap<&'static str, Vec<String>>;

/// Everything settings are read from.
pub(crate) struct Sources<R> {
    /// What they are for.
    pub(crate) command: Command,
    /// From the command line.
    pub(crate) flags: Flags,
    /// The environment.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// How a file is read.
    pub(crate) read: R,
}

impl Settings {
    /// Reads all sources.
    ///
    /// # Errors
    /// Everything that is wrong, not just the first thing.
    pub(crate) fn resolve<R>(sources: Sources<R>) -> Result<Self, Vec<Located>>
    where
        R: FnOnce(&Path) -> io::Result<String>,
    {
        let mut faults = Vec::new();
        let flags = from_flags(sources.flags);
        let variables = from_variables(sources.variables, &mut faults);
        let config = [&flags, &variables].into_iter().find_map(|layer| layer.get("config"));
        let file = match config.and_then(|given| given.texts.first()) {
            Some(path) => read_file(Path::new(path), sources.read, &mut faults),
            None => BTreeMap::new(),
        };

        // The strongest last, and every layer checked: a fault that another layer hides today shows itself tomorrow.
        let mut given = BTreeMap::new();
        for layer in [file, variables, flags] {
            for (name, value) in &layer {
                if let Some(declaration) = Declaration::find(name)
                    && let Err(fault) = declaration.check(value)
                {
                    faults.push(Located { place: value.place.clone(), fault });
                }
            }
            given.extend(layer);
        }
        if faults.is_empty()
            && let Some(mut settings) = Self::assemble(&given, sources.command)
        {
            faults = settings.conflicts(&given);
            let available = DECLARATIONS.iter().filter(|declaration| declaration.available());
            settings.shown =
                available.map(|declaration| declaration.shown(given.get(declaration.name), sources.command)).collect();
            if faults.is_empty() {
                return Ok(settings);
            }
        }
        faults.sort_by(|left, right| left.place.cmp(&right.place));
        Err(faults)
    }

    /// The node's name, chosen or made from the database's.
    ///
    /// # Errors
    /// When the name made is too long.
    pub(crate) fn node_name(&self) -> Result<Name, NameError> {
        match &self.node {
            Some(name) => Ok(name.clone()),
            None => Name::parse(&format!("v_{}_node0001", self.database)),
        }
    }

    /// Where etcd is; none with another store.
    fn endpoints(&self) -> Vec<String> {
        let StoreKind::Etcd(named) = &self.store else { return Vec::new() };
        let scheme = if self.etcd_ca.is_some() { "https" } else { "http" };
        let whole = |given: &String| if given.contains("://") { given.clone() } else { format!("{scheme}://{given}") };
        self.etcd.0.iter().chain(named).map(whole).collect()
    }

    /// How etcd is reached, with the files of TLS as they were read.
    pub(crate) fn etcd_options(&self, tls: Option<EtcdTls>) -> EtcdOptions {
        // What is wrong with the options themselves is known without the files.
        let unread = || EtcdTls { authority: Vec::new(), client: None, server_name: None };
        let login = self.etcd_user.as_ref().zip(self.etcd_password.as_ref());
        EtcdOptions {
            tls: tls.or_else(|| self.etcd_ca.is_some().then(unread)),
            login: login.map(|(user, password)| (user.to_string(), password.0.reveal().to_owned())),
            request_ms_max: self.etcd_time_ms_max.0,
            ..EtcdOptions::new(self.endpoints(), &self.etcd_prefix.0)
        }
    }

    /// The files of TLS, if it is to be spoken.
    pub(crate) fn tls(&self) -> Option<TlsOptions> {
        let (certificate, key) = self.tls_certificate.clone().zip(self.tls_key.clone())?;
        Some(TlsOptions { certificate, key, client_ca: self.tls_client_ca.clone(), version_min: self.tls_version_min })
    }

    /// What bounds clients.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            login_time_ms_max: self.login_time_ms_max.0,
            startup_bytes_max: self.startup_bytes_max.count(),
            message_bytes_max: self.message_bytes_max.count(),
            logins_max: self.logins_max.count(),
            connections_max: self.connections_max.count(),
            connections_reserved: self.connections_reserved.count(),
            throttle_delay_ms_min: self.throttle_delay_ms_min.0,
            throttle_delay_ms_max: self.throttle_delay_ms_max.0,
            throttle_window_ms: self.throttle_window_ms.0,
            throttle_addresses_max: self.throttle_addresses_max.count(),
        }
    }

    /// What is wrong only in the light of other settings or of the file system.
    fn conflicts(&self, given: &BTreeMap<&'static str, Given>) -> Vec<Located> {
        let place = |name: &str| given.get(name).map_or(Place::Default, |given| given.place.clone());
        let mut faults = Vec::new();
        for (index, address) in self.listen.iter().enumerate() {
            let again = self.listen.iter().skip(index + 1).any(|other| other == address);
            if again && address.port() != 0 {
                faults.push(Located { place: place("listen"), fault: Fault::ListenedTwice(*address) });
            }
        }
        for (lesser, lesser_value, greater, greater_value) in [
            ("connections_reserved", self.connections_reserved.0, "connections_max", self.connections_max.0),
            (
                "throttle_delay_ms_min",
                self.throttle_delay_ms_min.0,
                "throttle_delay_ms_max",
                self.throttle_delay_ms_max.0,
            ),
        ] {
            if lesser_value > greater_value {
                faults
                    .push(Located { place: place(lesser).or(place(greater)), fault: Fault::Order { lesser, greater } });
            }
        }
        for (set, name, needed, other) in [
            (self.tls_certificate.is_some(), "tls_certificate", self.tls_key.is_some(), "tls_key"),
            (self.tls_key.is_some(), "tls_key", self.tls_certificate.is_some(), "tls_certificate"),
            (self.tls_client_ca.is_some(), "tls_client_ca", self.tls_certificate.is_some(), "tls_certificate"),
            (self.etcd_certificate.is_some(), "etcd_certificate", self.etcd_key.is_some(), "etcd_key"),
            (self.etcd_key.is_some(), "etcd_key", self.etcd_certificate.is_some(), "etcd_certificate"),
            (self.etcd_certificate.is_some(), "etcd_certificate", self.etcd_ca.is_some(), "etcd_ca"),
            (self.etcd_user.is_some(), "etcd_user", self.etcd_password.is_some(), "etcd_password"),
            (self.etcd_password.is_some(), "etcd_password", self.etcd_user.is_some(), "etcd_user"),
            (self.store.is_etcd(), "store", !self.endpoints().is_empty(), "etcd"),
            (!self.etcd.0.is_empty(), "etcd", self.store.is_etcd(), "store"),
        ] {
            if set && !needed {
                faults.push(Located { place: place(name), fault: Fault::Alone { name, other } });
            }
        }
        if self.store.is_etcd()
            && !self.endpoints().is_empty()
            && let Err(fault) = EtcdLink::new(self.etcd_options(None))
        {
            faults.push(Located { place: place("etcd").or(place("store")), fault: Fault::Etcd(fault) });
        }
        if self.data_dir.exists() && !self.data_dir.is_dir() {
            faults.push(Located { place: place("data_dir"), fault: Fault::NotADirectory(self.data_dir.clone()) });
        }
        if let Err(source) = self.node_name() {
            faults.push(Located { place: place("database"), fault: Fault::NodeName(source) });
        }
        faults
    }
}

fn from_flags(flags: Flags) -> BTreeMap<&'static str, Given> {
    flags
        .into_iter()
        .filter_map(|(name, texts)| {
            let declaration = Declaration::find(name)?;
            let place = Place::Flag(declaration.flag());
            Some((declaration.name, Given { place, shape: Shape::Untyped, texts }))
        })
        .collect()
}

fn from_variables(variables: Vec<(OsString, OsString)>, faults: &mut Vec<Located>) -> BTreeMap<&'static str, Given> {
    let mut found = BTreeMap::new();
    for (name, value) in variables {
        let name = name.to_string_lossy().into_owned();
        if !name.starts_with(Declaration::VARIABLE_PREFIX) {
            continue;
        }
        let place = Place::Variable(name.clone());
        let declared = DECLARATIONS
            .iter()
            .filter(|declaration| declaration.sources.contains(&Source::Variable))
            .find(|declaration| declaration.variable() == name);
        let Some(declaration) = declared else {
            let rest = name.trim_start_matches(Declaration::VARIABLE_PREFIX).to_lowercase();
            let nearest = nearest(&rest, Source::Variable).map(Declaration::variable);
            faults.push(Located { place, fault: Fault::UnknownVariable { nearest } });
            continue;
        };
        let Ok(text) = value.into_string() else {
            faults.push(Located { place, fault: Fault::NotUtf8 });
            continue;
        };
        let texts = match declaration.shape {
            Shape::List => text.split(',').map(|part| part.trim().to_owned()).collect(),
            _ => vec![text],
        };
        found.insert(declaration.name, Given { place, shape: Shape::Untyped, texts });
    }
    found
}

fn read_file<R>(path: &Path, read: R, faults: &mut Vec<Located>) -> BTreeMap<&'static str, Given>
where
    R: FnOnce(&Path) -> io::Result<String>,
{
    match read(path) {
        Ok(text) => file::parse(path, &text, faults),
        Err(source) => {
            let place = Place::File { path: path.to_owned(), line: None };
            faults.push(Located { place, fault: Fault::Unreadable(source.to_string()) });
            BTreeMap::new()
        }
    }
}

/// The setting that a wrong name was most likely meant to be.
fn nearest(wrong: &str, source: Source) -> Option<&'static Declaration> {
    let distance_max = (wrong.chars().count() / 3).clamp(1, 3);
    DECLARATIONS
        .iter()
        .filter(|declaration| declaration.available() && declaration.sources.contains(&source))
        .map(|declaration| (strsim::damerau_levenshtein(wrong, declaration.name), declaration))
        .filter(|(distance, _)| *distance <= distance_max)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, declaration)| declaration)
}
