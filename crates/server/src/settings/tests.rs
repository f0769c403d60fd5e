#![expect(clippy::unwrap_used, reason = "a test may fail")]

use super::*;

/// Resolves with these flags (`name=value`), variables (`NAME=value`) and a file `s.toml`, if any.
fn resolve(flags: &[&str], variables: &[&str], file: Option<&str>) -> Result<Settings, Vec<String>> {
    let mut given = Flags::new();
    for flag in flags {
        let (name, value) = flag.split_once('=').unwrap();
        given.entry(Declaration::find(name).unwrap().name).or_default().push(value.to_owned());
    }
    if file.is_some() {
        given.entry("config").or_insert_with(|| vec!["s.toml".to_owned()]);
    }
    let variables = variables.iter().map(|variable| {
        let (name, value) = variable.split_once('=').unwrap();
        (name.into(), value.into())
    });
    let sources = Sources {
        command: Command::Serve,
        flags: given,
        variables: variables.collect(),
        read: |_: &Path| file.map(str::to_owned).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound)),
    };
    Settings::resolve(sources).map_err(|faults| faults.iter().map(Located::to_string).collect())
}

fn faults(flags: &[&str], variables: &[&str], file: Option<&str>) -> Vec<String> {
    resolve(flags, variables, file).err().unwrap_or_default()
}

#[test]
fn a_flag_wins_over_a_variable_over_the_file_over_the_default() {
    let flag = "listen=127.0.0.1:1";
    let variable = "SWITCHYARD_LISTEN=127.0.0.1:2";
    let file = "listen = \"127.0.0.1:3\"";
    for (flags, variables, file, port) in [
        (&[flag][..], &[variable][..], Some(file), 1),
        (&[flag], &[variable], None, 1),
        (&[flag], &[], Some(file), 1),
        (&[flag], &[], None, 1),
        (&[], &[variable], Some(file), 2),
        (&[], &[variable], None, 2),
        (&[], &[], Some(file), 3),
        (&[], &[], None, 5433),
    ] {
        let settings = resolve(flags, variables, file).unwrap();
        assert_eq!(settings.listen, ["127.0.0.1".parse::<std::net::IpAddr>().map(|ip| (ip, port).into()).unwrap()]);
    }
}

#[test]
fn every_setting_can_be_set_in_each_of_its_sources() {
    let samples = BTreeMap::from([
        ("config", "s.toml"),
        ("node", "n"),
        ("listen", "[::1]:0"),
        ("data_dir", "d"),
        ("store", "memory"),
        ("etcd", "http://127.0.0.1:2379,https://[::1]:2379"),
        ("etcd_prefix", "/p/q"),
        ("etcd_ca", "ca.crt"),
        ("etcd_certificate", "etcd.crt"),
        ("etcd_key", "etcd.key"),
        ("etcd_user", "root"),
        ("etcd_password", "secret"),
        ("etcd_time_ms_max", "500"),
        ("member_lease_s", "5"),
        ("http", "127.0.0.1:9000"),
        ("takeover_ms_max", "5000"),
        ("upstream_login_ms_max", "3000"),
        ("relay_threads", "2"),
        ("upstream_idle_max", "5"),
        ("upstream_idle_ms_max", "1000"),
        ("advertise", "db.example.org:5433"),
        ("upstream", "postgresql://u:p@h/d"),
        ("subcluster", "s"),
        ("database", "d"),
        ("password", "secret"),
        ("log", "warn,switchyard_session=debug"),
        ("log_format", "json"),
        ("tls_certificate", "server.crt"),
        ("tls_key", "server.key"),
        ("tls_client_ca", "ca.crt"),
        ("tls_version_min", "1.3"),
        ("connections_max", "5"),
        ("connections_reserved", "5"),
        ("logins_max", "5"),
        ("login_time_ms_max", "500"),
        ("startup_bytes_max", "5000"),
        ("message_bytes_max", "100000"),
        ("throttle_delay_ms_min", "5"),
        ("throttle_delay_ms_max", "500"),
        ("throttle_window_ms", "5"),
        ("throttle_addresses_max", "5"),
        ("drain_ms_max", "5"),
        ("port", "6000"),
        ("proxy_networks", "10.0.0.0/24"),
    ]);
    for declaration in DECLARATIONS.iter().filter(|declaration| declaration.available()) {
        let sample = samples.get(declaration.name).unwrap();
        for source in declaration.sources {
            let file = match declaration.shape {
                Shape::Integer => format!("{} = {sample}", declaration.name),
                _ => format!("{} = \"{sample}\"", declaration.name),
            };
            let mut found = match source {
                Source::Flag => faults(&[&format!("{}={sample}", declaration.name)], &[], Some("")),
                Source::Variable => faults(&[], &[&format!("{}={sample}", declaration.variable())], Some("")),
                Source::File => faults(&[], &[], Some(&file)),
            };
            // Some go by pairs.
            found.retain(|fault| !fault.contains("is of no use without"));
            assert_eq!(found, Vec::<String>::new(), "{} from {source:?}", declaration.name);
        }
    }
}

#[test]
fn several_addresses() {
    let expected: Vec<SocketAddr> = vec!["127.0.0.1:1".parse().unwrap(), "[::1]:2".parse().unwrap()];
    for settings in [
        resolve(&["listen=127.0.0.1:1", "listen=[::1]:2"], &[], None),
        resolve(&[], &["SWITCHYARD_LISTEN=127.0.0.1:1, [::1]:2"], None),
        resolve(&[], &[], Some("listen = [\"127.0.0.1:1\", \"[::1]:2\"]")),
    ] {
        assert_eq!(settings.unwrap().listen, expected);
    }
}

#[test]
fn the_variable_names_the_file_unless_a_flag_does() {
    let read_path = |flags: Flags| {
        let mut path = None;
        let variables = vec![("SWITCHYARD_CONFIG".into(), "by-variable.toml".into())];
        let read = |asked: &Path| {
            path = Some(asked.to_owned());
            Ok(String::new())
        };
        Settings::resolve(Sources { command: Command::Serve, flags, variables, read }).unwrap();
        path.unwrap()
    };
    assert_eq!(read_path(Flags::new()), Path::new("by-variable.toml"));
    assert_eq!(read_path(Flags::from([("config", vec!["by-flag.toml".into()])])), Path::new("by-flag.toml"));
}

#[test]
fn faults_are_named_placed_and_all_told() {
    let file = "\
# A comment
lisen = \"127.0.0.1:1\"
zebra = 1
drain_ms_max = \"10\"
listen = [1, 2]
connections_max = 0
password = \"hidden\"
store = \"consul\"
upstream = \"mysql://user:hidden@host\"
log = \"inof\"
http = \"9000\"

[node]
name = \"x\"
";
    let told = faults(
        &["http=localhost"],
        &["SWITCHYARD_DATADIR=x", "SWITCHYARD_LOG=loud", "SWITCHYARD_FRIEND=x", "PATH=x"],
        Some(file),
    );
    let expected = [
        "s.toml:2: unknown setting \"lisen\"; did you mean \"listen\"?",
        "s.toml:3: unknown setting \"zebra\"",
        "s.toml:4: \"drain_ms_max\" takes an integer, not a string",
        "s.toml:5: \"listen\" takes an array of strings, not an array of something else",
        "s.toml:6: invalid value \"0\" for \"connections_max\": must be between 1 and 1000000",
        "s.toml:7: \"password\" cannot be set in a file; use SWITCHYARD_PASSWORD",
        "s.toml:8: invalid value \"consul\" for \"store\": expected \"redb\", \"etcd\", \"memory\" or etcd://HOST:PORT",
        "s.toml:9: invalid value for \"upstream\": expected a URL that begins with postgresql://",
        "s.toml:10: invalid value \"inof\" for \"log\": expected a level, or target=level with commas between",
        "s.toml:11: invalid value \"9000\" for \"http\": expected an IP address and a port, such as 127.0.0.1:5433 or \
         [::1]:5433",
        "s.toml:13: \"node\" takes a string, not a table",
        "SWITCHYARD_DATADIR: unknown variable; did you mean \"SWITCHYARD_DATA_DIR\"?",
        "SWITCHYARD_FRIEND: unknown variable",
        "SWITCHYARD_LOG: invalid value \"loud\" for \"log\": expected a level, or target=level with commas between",
        "--http: invalid value \"localhost\" for \"http\": expected an IP address and a port, such as 127.0.0.1:5433 or \
         [::1]:5433",
    ];
    assert_eq!(told, expected);
}

#[test]
fn wrong_values_are_refused() {
    for (flag, expected) in [
        ("listen=5433", "--listen: invalid value \"5433\" for \"listen\": expected an IP address and a port"),
        ("listen=localhost:5433", "--listen: invalid value \"localhost:5433\" for \"listen\": expected an IP address"),
        ("advertise=0.0.0.0:5433", "--advertise: invalid value \"0.0.0.0:5433\" for \"advertise\": expected a host"),
        ("advertise=host:0", "--advertise: invalid value \"host:0\" for \"advertise\": expected a host"),
        ("advertise=::1:5433", "--advertise: invalid value \"::1:5433\" for \"advertise\": expected a host"),
        ("node=", "--node: invalid value \"\" for \"node\": zero-length name"),
        ("data_dir=", "--data-dir: invalid value \"\" for \"data_dir\": expected a path"),
        ("data_dir=/dev/null", "--data-dir: /dev/null is not a directory"),
        (
            "store=sqlite",
            "--store: invalid value \"sqlite\" for \"store\": expected \"redb\", \"etcd\", \"memory\" or etcd://",
        ),
        ("etcd_prefix=switchyard", "--etcd-prefix: invalid value \"switchyard\" for \"etcd_prefix\": expected a slash"),
        ("log_format=xml", "--log-format: invalid value \"xml\" for \"log_format\": expected \"text\" or \"json\""),
        ("drain_ms_max=-1", "--drain-ms-max: invalid value \"-1\" for \"drain_ms_max\": must be between 0 and 3600000"),
        ("drain_ms_max=1s", "--drain-ms-max: invalid value \"1s\" for \"drain_ms_max\": expected an integer"),
    ] {
        let told = faults(&[flag], &[], None);
        assert_eq!(told.len(), 1, "{flag}: {told:?}");
        assert!(told.concat().starts_with(expected), "{flag}: {told:?}");
    }
    assert_eq!(
        faults(&["listen=127.0.0.1:1", "listen=127.0.0.1:0", "listen=127.0.0.1:0", "listen=127.0.0.1:1"], &[], None),
        ["--listen: 127.0.0.1:1 is listened on twice"]
    );
    assert_eq!(
        faults(&["connections_max=2"], &[], None),
        ["--connections-max: \"connections_reserved\" is greater than \"connections_max\""]
    );
    let long = "d".repeat(Name::BYTES_MAX);
    assert_eq!(
        faults(&[&format!("database={long}")], &[], None),
        ["--database: no node name can be made from the database's; set \"node\""]
    );
}

#[test]
fn a_fault_that_a_flag_hides_is_told_all_the_same() {
    assert_eq!(
        faults(&["log=debug"], &[], Some("log = \"loud\"")),
        ["s.toml:1: invalid value \"loud\" for \"log\": expected a level, or target=level with commas between"]
    );
}

#[test]
fn broken_files_are_placed() {
    for (text, expected) in [
        ("log = \"info\"\nlisten = \n", "s.toml:2: syntax error: "),
        ("log = \"info\"\nlog = \"debug\"\n", "s.toml:2: syntax error: duplicate key"),
        ("\n\nnode = \"n", "s.toml:3: syntax error: "),
    ] {
        let told = faults(&[], &[], Some(text));
        assert!(told.first().is_some_and(|first| first.starts_with(expected)), "{text:?}: {told:?}");
    }
    let read = |_: &Path| Err(io::Error::from_raw_os_error(2));
    let flags = Flags::from([("config", vec!["absent.toml".to_owned()])]);
    let told = Settings::resolve(Sources { command: Command::Serve, flags, variables: Vec::new(), read }).unwrap_err();
    let told: Vec<String> = told.iter().map(Located::to_string).collect();
    assert_eq!(told, ["absent.toml: cannot read the file: No such file or directory (os error 2)"]);
}

#[test]
fn etcd_is_named_in_two_ways() {
    for flags in [
        &["store=etcd", "etcd=http://10.0.0.1:2379,10.0.0.2:2379/"][..],
        &["store=etcd://10.0.0.1:2379,10.0.0.2:2379"],
        &["store=etcd://10.0.0.2:2379", "etcd=10.0.0.1:2379"],
    ] {
        let options = resolve(flags, &["SWITCHYARD_ETCD_PREFIX=/fleet"], None).unwrap().etcd_options(None);
        assert_eq!(options.endpoints, ["http://10.0.0.1:2379", "http://10.0.0.2:2379"], "{flags:?}");
        assert_eq!(options.prefix, "/fleet");
    }
    let secured = ["store=etcd", "etcd=10.0.0.1:2379", "etcd_ca=ca.crt"];
    let options = resolve(&secured, &[], None).unwrap().etcd_options(None);
    assert_eq!(options.endpoints, ["https://10.0.0.1:2379"]);
    assert_eq!(
        faults(&["store=etcd", "etcd=10.0.0.1:2379", "etcd_user=root"], &[], None),
        ["--etcd-user: \"etcd_user\" is of no use without \"etcd_password\""]
    );
}

#[test]
fn secrets_are_not_shown() {
    let settings = resolve(&["upstream=postgresql://u:hidden@h"], &["SWITCHYARD_PASSWORD=hidden"], None).unwrap();
    assert!(!format!("{settings:?}").contains("hidden"));
}

#[test]
fn defaults_are_valid() {
    let settings = resolve(&[], &[], None).unwrap();
    assert_eq!(settings.listen, ["127.0.0.1:5433".parse().unwrap()]);
    assert_eq!(settings.node_name().unwrap().as_str(), "v_switchyard_node0001");
    assert_eq!(settings.limits(), Limits::default());
    assert_eq!(settings.store, StoreKind::Redb);
    assert_eq!(settings.data_dir, Path::new("switchyard-data"));
    let read = |_: &Path| -> io::Result<String> { unreachable!("no file is named") };
    let flags = Flags::new();
    let quickstart = Settings::resolve(Sources { command: Command::Quickstart, flags, variables: Vec::new(), read });
    // No server goes on unasked with a catalog that lets anybody in.
    assert_eq!(quickstart.unwrap().data_dir, Path::new("switchyard-quickstart"));
}
