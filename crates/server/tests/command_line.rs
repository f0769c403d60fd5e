//! The contract of the command line, kept by the binary itself: what it prints where, and how it ends.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_switchyard");

/// The binary without the settings of whoever runs the tests.
fn binary() -> Command {
    clean(Command::new(BINARY))
}

fn clean(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SWITCHYARD_") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn ended(output: Output) -> Ended {
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn run(arguments: &[&str]) -> Ended {
    ended(binary().args(arguments).output().unwrap())
}

/// A `serve` on a free port of loopback that has printed its ready line.
struct Running {
    process: Child,
    output: BufReader<ChildStdout>,
    /// The log, read as it is written: a process whose log nobody reads stops when the pipe is full.
    log: Receiver<String>,
    address: SocketAddr,
}

impl Running {
    fn start(data_dir: &Path, arguments: &[&str]) -> Self {
        let mut command = binary();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data_dir).args(arguments);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let errors = BufReader::new(process.stderr.take().unwrap());
        let (lines, log) = mpsc::channel();
        thread::spawn(move || errors.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let Some(address) = line.strip_prefix("listening on ").and_then(|rest| rest.strip_suffix('\n')) else {
            process.kill().unwrap();
            process.wait().unwrap();
            panic!("no ready line but {line:?}; {}", log.iter().collect::<Vec<_>>().join("\n"));
        };
        let address = address.parse().unwrap();
        Self { process, output, log, address }
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {}", self.process.id())]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits until it logs a line with this text.
    fn wait_for_log(&self, text: &str) {
        assert!(self.log.iter().any(|line| line.contains(text)), "the log ended without {text:?}");
    }

    /// What it printed after the ready line, what it logged and nobody read, and how it ended.
    fn wait(mut self) -> Ended {
        let mut stdout = String::new();
        self.output.read_to_string(&mut stdout).unwrap();
        let stderr = self.log.iter().map(|line| line + "\n").collect();
        Ended { code: self.process.wait().unwrap().code(), stdout, stderr }
    }

    fn stop(self) -> Ended {
        self.signal("TERM");
        self.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A test that failed: the process must not outlive it.
        let _gone = self.process.kill();
        let _reaped = self.process.wait();
    }
}

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn misuse_ends_with_64_and_says_what_is_wrong() {
    for (arguments, expected) in [
        (&[][..], "Usage: switchyard"),
        (&["serv"], "'serve'"),
        (&["quickstart", "extra"], "unexpected argument 'extra'"),
        (&["quickstart", "--listen", "127.0.0.1:0"], "unexpected argument '--listen'"),
        (&["serve", "--lisen", "127.0.0.1:0"], "'--listen'"),
        (&["serve", "extra"], "unexpected argument 'extra'"),
        (&["serve", "--node"], "a value is required"),
        (&["serve", "--node", "a", "--node", "b"], "cannot be used multiple times"),
        (&["serve", "--listen", "nowhere"], "--listen: invalid value \"nowhere\""),
        (&["serve", "--store", "etcd"], "--store: \"store\" is of no use without \"etcd\""),
        (&["serve", "--store", "etcd://nowhere"], "--store: etcd endpoint \"http://nowhere\" is not http://host:port"),
        (&["serve", "--store", "consul"], "--store: invalid value \"consul\""),
        (&["serve", "--etcd", "http://127.0.0.1:2379"], "--etcd: \"etcd\" is of no use without \"store\""),
        (&["serve", "--store", "etcd", "--etcd", "https://127.0.0.1:2379"], "is not http://host:port"),
        (&["serve", "--store", "etcd", "--etcd", "127.0.0.1:2379", "--etcd-prefix", "/"], "etcd prefix \"/\" does not"),
        (&["serve", "--http", "9000"], "--http: invalid value \"9000\""),
        (&["serve", "--password", "x"], "unexpected argument '--password'"),
        (&["serve", "--config", "/absent.toml"], "/absent.toml: cannot read the file: No such file or directory"),
        (&["quickstart", "--etcd", "http://127.0.0.1:2379"], "unexpected argument '--etcd'"),
        (&["dump", "--store", "memory"], "there is nothing to dump"),
        (&["check", "--data-dir", "x"], "unexpected argument '--data-dir'"),
    ] {
        let ended = run(arguments);
        assert_eq!(ended.code, Some(64), "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{arguments:?}");
        assert!(ended.stderr.contains(expected), "{arguments:?}: {}", ended.stderr);
    }
}

#[test]
fn an_unknown_variable_is_refused_with_the_nearest_name() {
    let ended = ended(binary().arg("serve").env("SWITCHYARD_LISTN", "127.0.0.1:0").output().unwrap());
    assert_eq!(ended.code, Some(64));
    assert_eq!(ended.stderr, "switchyard: SWITCHYARD_LISTN: unknown variable; did you mean \"SWITCHYARD_LISTEN\"?\n");
}

#[test]
fn version_and_help_go_to_standard_output() {
    let ended = run(&["--version"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), concat!("switchyard ", env!("CARGO_PKG_VERSION"), "\n")));
    let ended = run(&["serve", "--help"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert!(ended.stdout.contains("--listen <ADDR:PORT>"), "{}", ended.stdout);
    assert!(ended.stdout.contains("--http <ADDR:PORT>"), "{}", ended.stdout);
}

#[test]
fn check_tells_every_fault_with_its_line() {
    let directory = directory();
    let file = directory.path().join("switchyard.toml");
    fs::write(&file, "node = \"n\"\nlisen = \"127.0.0.1:1\"\ndrain_ms_max = \"long\"\n").unwrap();
    let checked = |file: &Path| ended(binary().arg("check").arg("--config").arg(file).output().unwrap());

    let ended = checked(&file);
    let shown = file.display();
    assert_eq!(
        ended.stderr,
        format!(
            "{shown}:2: unknown setting \"lisen\"; did you mean \"listen\"?\n\
             {shown}:3: \"drain_ms_max\" takes an integer, not a string\n"
        )
    );
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));

    fs::write(&file, "node = \"n\"\n").unwrap();
    let ended = checked(&file);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "the configuration is correct\n"), "{}", ended.stderr);
}

#[test]
fn check_tells_of_every_file_of_tls() {
    let arguments =
        ["check", "--tls-certificate", "nowhere.crt", "--tls-key", "nowhere.key", "--tls-client-ca", "no.crt"];
    let ended = ended(binary().args(arguments).output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    let lines: Vec<&str> = ended.stderr.lines().collect();
    for (line, file) in lines.iter().zip(["nowhere.crt", "no.crt", "nowhere.key"]) {
        assert!(line.starts_with(&format!("cannot read {file}")), "{line}");
    }
    assert_eq!(lines.len(), 3, "{lines:?}");
}

#[test]
fn serve_refuses_what_check_refuses() {
    let directory = directory();
    let file = directory.path().join("switchyard.toml");
    fs::write(&file, "stor = \"redb\"\n").unwrap();
    let ended = ended(binary().arg("serve").arg("--config").arg(&file).output().unwrap());
    assert_eq!(ended.code, Some(64));
    assert!(ended.stderr.contains(":1: unknown setting \"stor\"; did you mean \"store\"?"), "{}", ended.stderr);
}

#[test]
fn a_first_start_writes_a_password_only_the_owner_can_read() {
    let directory = directory();
    let data_dir = directory.path().join("data");
    let file = data_dir.join("dbadmin.password");

    let ended = Running::start(&data_dir, &[]).stop();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let password = fs::read_to_string(&file).unwrap();
    assert!(password.trim_end().len() >= 20, "a short password");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(ended.stderr.contains(&file.display().to_string()), "{}", ended.stderr);
    assert!(!ended.stderr.contains(password.trim_end()), "the password is in the log");

    // The catalog is there now: the password of a second start would be a lie.
    fs::remove_file(&file).unwrap();
    let ended = Running::start(&data_dir, &[]).stop();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!file.exists());
}

#[test]
fn a_chosen_password_is_written_nowhere() {
    let directory = directory();
    let data_dir = directory.path().join("data");
    let mut command = binary();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(&data_dir);
    command.env("SWITCHYARD_PASSWORD", "a chosen password").env("SWITCHYARD_LOG", "trace");
    let ended = Running::spawn(command).stop();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!data_dir.join("dbadmin.password").exists());
    assert!(!ended.stderr.contains("a chosen password"), "{}", ended.stderr);
}

#[test]
fn one_ready_line_for_each_listener_and_nothing_else_on_standard_output() {
    let directory = directory();
    let mut running = Running::start(directory.path(), &["--listen", "127.0.0.1:0", "--log", "debug"]);
    let mut second = String::new();
    running.output.read_line(&mut second).unwrap();
    let second: SocketAddr = second.trim_end().strip_prefix("listening on ").unwrap().parse().unwrap();
    assert_ne!(running.address, second);
    for address in [running.address, second] {
        TcpStream::connect(address).unwrap();
    }
    let ended = running.stop();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{}", ended.stderr);
}

#[test]
fn either_signal_ends_it_well() {
    for signal in ["TERM", "INT"] {
        let directory = directory();
        let running = Running::start(directory.path(), &["--store", "memory"]);
        let address = running.address;
        running.signal(signal);
        let ended = running.wait();
        assert_eq!(ended.code, Some(0), "{signal}: {}", ended.stderr);
        assert!(TcpStream::connect(address).is_err(), "{signal}");
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let directory = directory();
    let running = Running::start(directory.path(), &["--drain-ms-max", "3600000"]);
    // A client that says nothing is still there when the first signal comes. One that was refused shows that it has
    // been accepted.
    let silent = TcpStream::connect(running.address).unwrap();
    refused(running.address);
    running.signal("TERM");
    running.wait_for_log("stopping");
    running.signal("INT");
    assert_eq!(running.wait().code, Some(130));
    drop(silent);
}

/// Sends what no client sends, and waits for the end of the connection.
fn refused(address: SocketAddr) {
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"\0\0\0\x04").unwrap();
    let mut answer = Vec::new();
    let _reset = client.read_to_end(&mut answer);
}

#[test]
fn sessions_end_when_their_time_is_over() {
    let directory = directory();
    let running = Running::start(directory.path(), &["--drain-ms-max", "0"]);
    let _silent = TcpStream::connect(running.address).unwrap();
    refused(running.address);
    let ended = running.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("closing the sessions that are left"), "{}", ended.stderr);
}

#[test]
fn a_port_in_use_is_named() {
    let directory = directory();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended =
        ended(binary().args(["serve", "--listen", &address, "--data-dir"]).arg(directory.path()).output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.contains(&format!("cannot listen on {address}: Address already in use")), "{}", ended.stderr);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "a start that failed left something behind");
}

#[test]
fn a_data_directory_serves_one_process() {
    let directory = directory();
    let running = Running::start(directory.path(), &[]);
    for arguments in [&["serve", "--listen", "127.0.0.1:0"][..], &["dump"]] {
        let ended = ended(binary().args(arguments).arg("--data-dir").arg(directory.path()).output().unwrap());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(ended.stderr.contains("is in use by another process"), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("choose another directory with --data-dir"), "{arguments:?}: {}", ended.stderr);
    }
    assert_eq!(running.stop().code, Some(0));
}

#[test]
fn a_data_directory_that_cannot_be_made_is_named() {
    // A directory below a file can be made by nobody, not even by root.
    let directory = directory();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let data_dir = file.join("data");
    let ended =
        ended(binary().args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(&data_dir).output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    let expected = format!("cannot make the data directory {}: Not a directory", data_dir.display());
    assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
}

#[test]
fn dump_makes_nothing() {
    let directory = directory();
    let data_dir = directory.path().join("absent");
    let ended = ended(binary().args(["dump", "--data-dir"]).arg(&data_dir).output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.contains("there is no store at"), "{}", ended.stderr);
    assert!(!data_dir.exists());
}

#[test]
fn logs_can_be_json() {
    let directory = directory();
    let ended = Running::start(directory.path(), &["--log-format", "json"]).stop();
    let lines: Vec<_> = ended.stderr.lines().collect();
    assert!(!lines.is_empty());
    for line in lines {
        assert!(line.starts_with("{\"timestamp\":") && line.ends_with('}'), "{line}");
    }
}

#[test]
fn too_many_open_files_end_nothing() {
    let directory = directory();
    let mut command = clean(Command::new("sh"));
    command.args(["-c", "ulimit -n 48; exec \"$0\" \"$@\"", BINARY, "serve", "--listen", "127.0.0.1:0", "--data-dir"]);
    command.arg(directory.path());
    let running = Running::spawn(command);
    // More than it can open: the kernel completes these connections, the process cannot take them all.
    let clients: Vec<TcpStream> = (0..64).map(|_| TcpStream::connect(running.address).unwrap()).collect();
    running.wait_for_log("cannot accept connections");
    drop(clients);
    // Served again: the server speaks or closes, and either ends the wait.
    refused(running.address);
    assert_eq!(running.stop().code, Some(0));
}
