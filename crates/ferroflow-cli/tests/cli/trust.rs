//! Credentials: `ferroflow certs`, servers with TLS, and `ferroflow proxy`.

use crate::common::{FOREVER, Lines, Running, ferroflow, folder, free_addresses};
use ferroflow::cluster::{ConnectOptions, Credentials};
use ferroflow::graph::{Attrs, GraphDef, GraphDefSession, NodeDef};
use ferroflow::{DType, Tensor};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

struct Started {
    process: Running,
    target: String,
    _lines: Lines,
}

/// Starts a command that prints its address when it is ready.
fn start(mut command: Command) -> Started {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
    let mut process = Running(child);
    let lines = Lines::of(process.0.stdout.take().unwrap());
    let ready = lines.wait_for("ready grpc");
    let target = ready.trim_start_matches("ready ").trim().to_string();
    Started { process, target, _lines: lines }
}

fn certs(out: &Path, words: &[&str]) {
    let made = ferroflow(&["certs", "--out", out.to_str().unwrap()]).args(words).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn server(spec: &str, words: &[&str]) -> Command {
    let mut command = ferroflow(&["server", "--cluster", spec, "--job", "worker", "--task", "0"]);
    command.args(words);
    command
}

/// Opens a session and runs a step.
fn seven(target: &str, credentials: Option<Credentials>, timeout: Duration) -> Option<f32> {
    let value = Attrs::new().with("dtype", DType::Float).with("value", Tensor::scalar(7f32));
    let node = NodeDef { name: "x".into(), op: "Const".into(), attrs: value, ..NodeDef::default() };
    let graph = GraphDef { nodes: vec![node], ..GraphDef::default() };
    let options = ConnectOptions { timeout, credentials, ..ConnectOptions::default() };
    let session = GraphDefSession::connect_with(target, &graph, &options).ok()?;
    session.run(&[], &["x:0"]).ok()?[0].scalar_value().ok()
}

const SHORT: Duration = Duration::from_millis(500);

#[test]
fn a_server_with_credentials_serves_their_holders_alone() {
    let dir = folder("trust");
    let address = free_addresses("127.0.0.1", 1).remove(0);
    let spec = format!("worker={address}");
    certs(&dir, &["--cluster", &spec, "client"]);
    let own = dir.join("worker-0");
    let server = start(server(&spec, &["--credentials", own.to_str().unwrap()]));
    assert_eq!(server.target, format!("grpcs://{address}"));
    let client = Credentials::from_folder(&dir.join("client")).unwrap();
    assert_eq!(seven(&server.target, Some(client.clone()), FOREVER), Some(7.0));
    let plain = server.target.replace("grpcs", "grpc");
    assert_eq!(seven(&plain, None, SHORT), None, "without TLS");
    let strange = folder("stranger");
    certs(&strange, &["client"]);
    let stranger = Credentials::from_folder(&strange.join("client")).unwrap();
    assert_eq!(seven(&server.target, Some(stranger), SHORT), None, "another CA");
    // A client without TLS goes through a proxy.
    let cert = dir.join("client").join("tls.crt");
    let mut proxy = ferroflow(&["proxy", "--to", &server.target]);
    proxy.arg("--cert").arg(&cert);
    let proxy = start(proxy);
    assert!(proxy.target.starts_with("grpc://127.0.0.1:"), "{}", proxy.target);
    assert_eq!(seven(&proxy.target, None, FOREVER), Some(7.0));
    // Renewed certificates are used without a restart.
    certs(&dir, &["--cluster", &spec, "client"]);
    assert_eq!(seven(&server.target, Some(client), FOREVER), Some(7.0));
    proxy.process.signal("TERM");
    let Started { process: mut ending, .. } = proxy;
    assert_eq!(ending.end().code(), Some(0));
    for dir in [dir, strange] {
        std::fs::remove_dir_all(dir).unwrap();
    }
}

#[test]
fn a_training_worker_uses_the_credentials_of_its_environment() {
    let dir = folder("train-tls");
    let addresses = free_addresses("127.0.0.1", 2);
    let spec = format!("ps={};worker={}", addresses[0], addresses[1]);
    certs(&dir, &["--cluster", &spec]);
    let mut ps = ferroflow(&["server", "--cluster", &spec, "--job", "ps", "--task", "0"]);
    ps.arg("--credentials").arg(dir.join("ps-0"));
    let _ps = start(ps);
    let mut worker = ferroflow(&["train", "linear", "--ps", "1", "--workers", "1", "--steps", "5"]);
    worker.args(["--cluster", &spec, "--task", "0", "--out"]).arg(dir.join("model"));
    worker.env("FERROFLOW_CREDENTIALS", dir.join("worker-0"));
    let child = worker.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut worker = Running(child);
    Lines::of(worker.0.stdout.take().unwrap()).wait_for("\"done\":true");
    drop(worker);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_wide_bind_without_credentials_is_refused_with_advice() {
    for wide in ["0.0.0.0", "[::]:0"] {
        let out = server("worker=127.0.0.1:0", &["--bind", wide]).output().unwrap();
        assert_eq!(out.status.code(), Some(1));
        let said = String::from_utf8_lossy(&out.stderr);
        for advice in ["ferroflow certs", "--credentials", "--insecure"] {
            assert!(said.contains(advice), "{said}");
        }
    }
    let address = free_addresses("127.0.0.1", 1).remove(0);
    let spec = format!("worker={address}");
    let open = start(server(&spec, &["--bind", "0.0.0.0", "--insecure"]));
    assert_eq!(seven(&open.target, None, FOREVER), Some(7.0));
}

#[test]
fn a_wide_bind_without_file_roots_warns() {
    let dir = folder("wide");
    let address = free_addresses("127.0.0.1", 1).remove(0);
    let spec = format!("worker={address}");
    certs(&dir, &["--cluster", &spec, "client"]);
    let own = dir.join("worker-0");
    for (bind, roots, warns) in
        [("0.0.0.0", false, true), ("0.0.0.0", true, false), ("127.0.0.1", false, false)]
    {
        let mut command = server(&spec, &["--bind", bind, "--credentials"]);
        command.arg(&own);
        if roots {
            command.arg("--file-root").arg(&dir);
        }
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut process = Running(child);
        Lines::of(process.0.stdout.take().unwrap()).wait_for("ready grpcs://");
        process.signal("TERM");
        process.end();
        let mut errors = String::new();
        process.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!(errors.contains("--file-root"), warns, "{bind} {roots}: {errors}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn missing_and_malformed_credentials_are_named() {
    let dir = folder("no-credentials");
    let spec = "worker=127.0.0.1:0";
    let errors = |words: &[&str]| {
        let out = server(spec, words).output().unwrap();
        assert_eq!(out.status.code(), Some(1));
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    let path = dir.to_str().unwrap();
    assert!(errors(&["--credentials", path]).contains("ca.crt"), "{}", errors(&[path]));
    for name in ["ca.crt", "tls.crt", "tls.key"] {
        std::fs::write(dir.join(name), "nonsense").unwrap();
    }
    assert!(errors(&["--credentials", path]).contains("PEM"));
    std::fs::remove_dir_all(dir).unwrap();
}

/// The secrets of a job are in no list of processes and in no environment that others can read.
#[test]
fn secrets_are_neither_in_arguments_nor_in_the_environment_of_a_rank() {
    let bench = ["bench", "allreduce", "--sizes", "4", "--seconds", "3", "--json"];
    let program = [crate::common::PROGRAM];
    let job = [&["run", "-np", "2", "--"], &program[..], &bench].concat();
    let mut launcher = ferroflow(&job);
    let mut launcher = Running(launcher.stdout(Stdio::piped()).spawn().unwrap());
    let ranks = ranks_of(launcher.0.id());
    assert_eq!(ranks.len(), 2);
    for pid in ranks {
        let read = |what: &str| {
            let bytes = std::fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let until = std::time::Instant::now() + FOREVER;
        let secret = |text: &str| {
            let value = text.split('\0').find_map(|v| v.strip_prefix("FERROFLOW_TOKEN="));
            value.is_some_and(|value| value.chars().any(|c| c.is_ascii_hexdigit()))
        };
        while secret(&read("environ")) {
            assert!(std::time::Instant::now() < until, "the token stays in the environment");
        }
        assert!(!read("cmdline").contains("TOKEN"));
    }
    assert!(launcher.end().success());
}

/// Waits until the launcher has started its two ranks.
fn ranks_of(launcher: u32) -> Vec<u32> {
    let until = std::time::Instant::now() + FOREVER;
    loop {
        let children = format!("/proc/{launcher}/task/{launcher}/children");
        let children = std::fs::read_to_string(children).unwrap_or_default();
        let is_rank = |pid: &u32| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).contains("allreduce")
        };
        let ranks: Vec<u32> =
            children.split_whitespace().filter_map(|p| p.parse().ok()).filter(is_rank).collect();
        if ranks.len() == 2 || std::time::Instant::now() > until {
            return ranks;
        }
    }
}
