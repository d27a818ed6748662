//! `--http`, JSON logs, `ferroflow top`, completions and man pages, as a user runs them.

use crate::common::{FOREVER, Lines, Running, ferroflow, folder};
use ferroflow::graph::{Attrs, GraphDef, GraphDefSession, NodeDef};
use ferroflow::{DType, Tensor};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

struct Served {
    process: Running,
    http: String,
    target: String,
    errors: Lines,
}

fn serve(more: &[&str]) -> Served {
    let mut command = ferroflow(&["server", "--cluster", "worker=127.0.0.1:0", "--job", "worker"]);
    command.args(["--task", "0", "--http", "0"]).args(more);
    command.env("FERROFLOW_LOG", "info,ferroflow_cluster::master=debug");
    let mut process =
        Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let out = Lines::of(process.0.stdout.take().unwrap());
    let errors = Lines::of(process.0.stderr.take().unwrap());
    let http = out.wait_for("http http://").replace("http http://", "");
    let target = out.wait_for("ready grpc://").replace("ready ", "");
    Served { process, http, target, errors }
}

fn get(address: &str, path: &str) -> String {
    get_from(address, address, path)
}

/// As a browser asks for a page of `host`.
fn get_from(address: &str, host: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(FOREVER)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The value of a metric with exactly these labels.
fn value(text: &str, metric: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {metric} in\n{text}")).parse().unwrap()
}

#[test]
fn steps_sessions_and_refusals_are_counted_and_logged() {
    let served = serve(&["--log-format", "json"]);
    let value_of = Attrs::new().with("dtype", DType::Float).with("value", Tensor::scalar(2f32));
    let two =
        NodeDef { name: "two".into(), op: "Const".into(), attrs: value_of, ..NodeDef::default() };
    let graph = GraphDef { nodes: vec![two], ..GraphDef::default() };
    let session = GraphDefSession::connect(&served.target, &graph).unwrap();
    for _ in 0..3 {
        session.run(&[], &["two:0"]).unwrap();
    }
    assert!(session.run(&[], &["three:0"]).is_err());
    let text = get(&served.http, "/metrics");
    assert_eq!(value(&text, "ferroflow_steps_total{result=\"ok\"}"), 3.0);
    assert_eq!(value(&text, "ferroflow_steps_total{result=\"failed\"}"), 1.0);
    assert_eq!(value(&text, "ferroflow_step_seconds_count"), 4.0);
    // This client requests the errors of its steps in the answer, so the call itself succeeds.
    assert_eq!(value(&text, "ferroflow_rpcs_total{method=\"RunStep\",code=\"ok\"}"), 4.0);
    assert_eq!(value(&text, "ferroflow_sessions"), 1.0);
    assert!(value(&text, "ferroflow_connections") >= 1.0);
    assert!(value(&text, "ferroflow_phase_seconds_total{phase=\"input\"}") > 0.0);
    assert!(value(&text, "ferroflow_received_bytes_total{path=\"grpc\"}") > 0.0);
    let task: Value =
        serde_json::from_str(get(&served.http, "/api/task").rsplit("\r\n\r\n").next().unwrap())
            .unwrap();
    assert_eq!((&task["job"], &task["steps"]), (&"worker".into(), &3.into()));
    assert!(get(&served.http, "/api/graph").contains("\"two\""));
    let line =
        |text: &str| -> Value { serde_json::from_str(&served.errors.wait_for(text)).unwrap() };
    let accepted = line("connection accepted");
    assert_eq!((&accepted["target"], &accepted["kind"]), (&"audit".into(), &"grpc".into()));
    assert_eq!((&accepted["job"], &accepted["task"]), (&"worker".into(), &0.into()));
    assert_eq!(line("session opened")["session"], 1);
    let failed = line("a step failed");
    assert!(failed["step"].is_i64() && failed["session"] == 1, "{failed}");
    let accepted = line("connection accepted");
    assert_eq!((&accepted["target"], &accepted["kind"]), (&"audit".into(), &"http".into()));
    session.close().unwrap();
    assert_eq!(line("session closed")["session"], 1);
    assert_eq!(value(&get(&served.http, "/metrics"), "ferroflow_sessions"), 0.0);
    assert!(get_from(&served.http, "evil.example", "/api/task").starts_with("HTTP/1.1 421 "));
    let refused = line("refused an HTTP request");
    assert_eq!((&refused["target"], &refused["path"]), (&"audit".into(), &"/api/task".into()));
    assert!(refused["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{refused}");
    // A session that its client does not close ends with the server, and the log records that.
    let _left = GraphDefSession::connect(&served.target, &graph).unwrap();
    assert_eq!(line("session opened")["session"], 2);
    served.process.signal("TERM");
    let ended = line("session ended: the server stops");
    assert_eq!((&ended["target"], &ended["session"]), (&"audit".into(), &2.into()));
}

#[test]
fn probes_are_open_to_all_hosts_only_on_request() {
    let mut wide = ferroflow(&["server", "--cluster", "worker=127.0.0.1:0", "--job", "worker"]);
    wide.args(["--task", "0", "--http", "0.0.0.0:0"]);
    let refused = wide.output().unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("without credentials"));
    let served = serve(&["--http-open"]);
    assert!(get(&served.http, "/readyz").starts_with("HTTP/1.1 200 "));
    assert!(get(&served.http, "/metrics").contains("ferroflow_steps_total"));
    assert!(get(&served.http, "/api/task").starts_with("HTTP/1.1 404 "));
}

#[test]
fn top_prints_a_table_and_the_page_is_beside_the_task() {
    let served = serve(&["--dashboard"]);
    let top = ferroflow(&["top", &served.http]).output().unwrap();
    let text = String::from_utf8(top.stdout).unwrap();
    assert!(text.starts_with("1 task, 0 lost"), "{text}");
    assert!(text.contains("\nworker 0 "), "{text}");
    let page = get(&served.http, "/");
    assert!(page.contains("<title>Ferroflow</title>") && page.contains("content-security-policy"));
    assert!(get(&served.http, "/page.js").contains("EventSource"));
    assert!(get(&served.http, "/metrics").contains("ferroflow_steps_total"));
    let json = ferroflow(&["top", "--json", &served.http]).output().unwrap();
    let state: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(state["tasks"][0]["name"], "worker 0");
}

#[test]
fn ranks_have_the_ports_after_the_first() {
    let script = "echo $FERROFLOW_HTTP";
    let mut run = ferroflow(&["run", "-np", "2", "--http", "9100", "--", "bash", "-c", script]);
    let said = String::from_utf8(run.output().unwrap().stdout).unwrap();
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] 127.0.0.1:9100", "[1] 127.0.0.1:9101"]);
}

#[test]
fn completions_and_man_pages_name_every_verb() {
    for shell in ["bash", "zsh", "fish"] {
        let done = ferroflow(&["completions", shell]).output().unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        for verb in ["server", "train", "dashboard", "top"] {
            assert!(text.contains(verb), "no {verb} for {shell}");
        }
    }
    let pages = folder("man");
    assert!(ferroflow(&["man"]).arg(&pages).status().unwrap().success());
    let page = std::fs::read_to_string(pages.join("ferroflow-server.1")).unwrap();
    assert!(page.contains("\\-\\-http") && page.starts_with(".ie"), "{page}");
    assert!(pages.join("ferroflow.1").exists() && pages.join("ferroflow-top.1").exists());
    let _ = std::fs::remove_dir_all(&pages);
}
