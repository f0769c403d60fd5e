//! What `docker/` says, checked without an engine: everything named there exists, and the settings are taken.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{Store, repository_root, tracked_files};

use crate::http::answers_at;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        crate::trial("the_dockerfile_names_what_is_there", dockerfile),
        crate::trial("the_compose_file_is_of_one_piece", compose),
        crate::trial("the_health_check_tells_whether_the_server_lives", healthy),
    ]
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(repository_root().join(path)).with_context(|| path.to_owned())
}

/// The instructions, each on one line, without comments.
fn instructions(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
    let joined = lines.replace("\\\n", " ");
    joined
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect()
}

fn dockerfile() -> Result<()> {
    let instructions = instructions(&read("docker/Dockerfile")?);
    let of = |name: &str| -> Vec<&str> {
        instructions.iter().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).collect()
    };
    let toolchain = read("rust-toolchain.toml")?;
    let version = toolchain.split('"').nth(1).context("no version")?;
    let [build, run] = of("FROM")[..] else { anyhow::bail!("{:?}", of("FROM")) };
    ensure!(build == format!("rust:{version}-bookworm AS build"), "{build} is not the compiler that is pinned");
    ensure!(run == "debian:bookworm-slim", "{run}");
    // What is copied from here is here, and let through.
    let ignored = read(".dockerignore")?;
    for copied in of("COPY").into_iter().filter(|copied| !copied.starts_with("--from=")) {
        let paths: Vec<&str> = copied.split(' ').filter(|word| !word.starts_with("--")).collect();
        for path in paths.split_last().context("nothing is copied")?.1 {
            ensure!(repository_root().join(path).exists(), "{path} is not there");
            let top = path.split('/').next().unwrap_or_default();
            ensure!(ignored.lines().any(|line| line == format!("!{top}")), "{path} is kept out");
        }
    }
    let manifest = read("crates/server/Cargo.toml")?;
    ensure!(manifest.contains("name = \"switchyard-server\"") && manifest.contains("name = \"switchyard\""));
    ensure!(of("RUN").iter().any(|run| run.contains("--package switchyard-server") && run.contains("--locked")));
    for run in of("RUN").into_iter().filter(|run| run.contains("apt-get install")) {
        ensure!(run.contains("--no-install-recommends") && run.contains("rm -rf /var/lib/apt/lists"), "{run}");
    }
    // Whoever it runs as was made before, and is not root.
    let user = *of("USER").last().context("it runs as root")?;
    ensure!(of("RUN").iter().any(|run| run.contains("useradd") && run.ends_with(user)), "{user} is not made");
    ensure!(of("HEALTHCHECK").len() == 1 && of("HEALTHCHECK").iter().any(|check| check.ends_with("CMD [\"healthy\"]")));
    let mut settings = BTreeMap::new();
    for word in of("ENV").into_iter().flat_map(|line| line.split(' ')) {
        let (name, value) = word.split_once('=').context("ENV without a value")?;
        settings.insert(name.to_owned(), value.to_owned());
    }
    is_taken(&settings)
}

/// Whether the server takes variables as its settings.
fn is_taken(variables: &BTreeMap<String, String>) -> Result<()> {
    let mut check = Command::new(env!("CARGO_BIN_EXE_switchyard"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SWITCHYARD_")) {
        check.env_remove(name);
    }
    let output = check.arg("check").envs(variables).output()?;
    ensure!(output.status.success(), "{variables:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn healthy() -> Result<()> {
    let server = crate::options().store(Store::Memory).argument("--http").argument("127.0.0.1:0").start()?;
    let place = format!("127.0.0.1:{}", answers_at(&server)?);
    let check = || {
        let script = repository_root().join("docker/healthy");
        Command::new(script).env("SWITCHYARD_HTTP", &place).output().map(|output| output.status.success())
    };
    ensure!(check()?, "it is not healthy");
    server.finish()?;
    ensure!(!check()?, "it is healthy, and does not run");
    Ok(())
}

/// A service of the compose file: its lines, without the first level of indentation.
type Service = Vec<String>;

fn services(text: &str) -> BTreeMap<String, Service> {
    let (mut services, mut within, mut current) = (BTreeMap::<String, Service>::new(), false, None);
    for line in text.lines() {
        if !line.starts_with(' ') && !line.is_empty() {
            within = line == "services:";
        } else if within && let Some(line) = line.strip_prefix("  ") {
            match line.strip_suffix(':').filter(|_| !line.starts_with(' ')) {
                Some(name) => {
                    services.insert(name.to_owned(), Vec::new());
                    current = Some(name.to_owned());
                }
                None => {
                    let lines = current.as_ref().and_then(|name| services.get_mut(name));
                    lines.into_iter().for_each(|lines| lines.push(line.to_owned()));
                }
            }
        }
    }
    services
}

/// What stands below a key of a service.
fn below<'a>(service: &'a Service, key: &str) -> Vec<&'a str> {
    let start = format!("  {key}:");
    let from = service.iter().position(|line| *line == start).map_or(service.len(), |at| at + 1);
    service.iter().skip(from).take_while(|line| line.starts_with("    ")).map(|line| line.trim()).collect()
}

fn one_of<'a>(service: &'a Service, key: &str) -> Option<&'a str> {
    let start = format!("  {key}: ");
    service.iter().find_map(|line| line.strip_prefix(&start))
}

fn compose() -> Result<()> {
    let text = read("docker/compose.yaml")?;
    ensure!(!text.contains('\t'), "tabs");
    let services = services(&text);
    let names: BTreeSet<&str> = services.keys().map(String::as_str).collect();
    ensure!(names == BTreeSet::from(["east", "etcd", "north", "pg1", "pg2", "pg3", "south"]), "{names:?}");
    let volumes = text.split_once("\nvolumes:\n").context("no volumes")?.1;
    let mut ports = BTreeSet::new();
    for (name, service) in &services {
        let image = one_of(service, "image").context("no image")?;
        let ours = !below(service, "build").is_empty();
        ensure!(
            ours == (image == "switchyard") && (ours || image.contains(':')) && !image.ends_with(":latest"),
            "{image}"
        );
        for other in below(service, "depends_on").iter().filter_map(|line| line.strip_suffix(':')) {
            ensure!(names.contains(other), "{name} depends on {other}, which is not there");
            let other = services.get(other).context("none")?;
            ensure!(!below(other, "healthcheck").is_empty(), "nobody knows whether it is healthy");
        }
        for volume in below(service, "volumes") {
            let volume = volume.trim_start_matches("- ").split(':').next().unwrap_or_default();
            ensure!(volumes.lines().any(|line| line.trim() == format!("{volume}:")), "{volume} is not declared");
        }
        if ours {
            member(name, service, &names)?;
            let port = below(service, "ports").first().map(|port| (*port).to_owned()).context("no port")?;
            ensure!(port.ends_with(":5433\"") && ports.insert(port), "{name} has no port of its own");
        }
    }
    let tracked = tracked_files()?;
    let dockerfile = tracked.iter().any(|path| path.ends_with("docker/Dockerfile"));
    ensure!(dockerfile && tracked.iter().any(|path| path.ends_with("docker/healthy")));
    Ok(())
}

/// The settings of a member are taken, and lead to what is there.
fn member(name: &str, service: &Service, names: &BTreeSet<&str>) -> Result<()> {
    let mut settings = BTreeMap::new();
    for line in below(service, "environment") {
        let (variable, value) = line.split_once(": ").context("no value")?;
        // What whoever starts it must set.
        let value = match value.split_once("${") {
            Some((before, rest)) => {
                let (asked, after) = rest.split_once('}').context("no end")?;
                ensure!(asked.contains(":?"), "{variable} may be empty");
                format!("{before}a-password{after}")
            }
            None => value.to_owned(),
        };
        settings.insert(variable.to_owned(), value);
    }
    is_taken(&settings)?;
    let host_of = |variable: &str| -> Result<String> {
        let value = settings.get(variable).with_context(|| format!("{name} has no {variable}"))?;
        let place = value.rsplit(['/', '@']).find(|part| part.contains(':')).unwrap_or(value);
        Ok(place.split(':').next().unwrap_or_default().to_owned())
    };
    ensure!(
        settings.get("SWITCHYARD_NODE").map(String::as_str) == Some(name) && host_of("SWITCHYARD_ADVERTISE")? == name
    );
    for variable in ["SWITCHYARD_ETCD", "SWITCHYARD_UPSTREAM"] {
        let host = host_of(variable)?;
        ensure!(names.contains(host.as_str()), "{variable} of {name} leads to {host}, which is not there");
        let waits = below(service, "depends_on");
        ensure!(waits.contains(&format!("{host}:").as_str()), "{name} does not wait for {host}");
    }
    Ok(())
}
