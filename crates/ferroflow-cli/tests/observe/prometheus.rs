//! The official Python client of Prometheus reads both text formats.

use crate::common::{Lines, Running, ferroflow};
use crate::{failure, installed};
use std::process::{Command, Stdio};

fn python() -> Command {
    let own = installed().join("venv/bin/python");
    Command::new(if own.exists() { own } else { "python3".into() })
}

pub fn missing() -> Option<String> {
    failure("python3 with prometheus_client", python().args(["-c", "import prometheus_client"]))
}

/// Reads the metrics of a task in both formats and compares them with what must be there.
const PROGRAM: &str = r#"
import sys, urllib.request
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_text

def fetch(accept):
    request = urllib.request.Request(sys.argv[1] + "/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.headers["Content-Type"], answer.read().decode()

kind, text = fetch("application/openmetrics-text; version=1.0.0")
assert kind.startswith("application/openmetrics-text"), kind
found = {family.name: family for family in read_open(text)}
kind, text = fetch("text/plain")
assert kind.startswith("text/plain; version=0.0.4"), kind
old = {family.name: family for family in read_text(text)}
for name, type in [
    ("ferroflow_steps", "counter"), ("ferroflow_step_seconds", "histogram"),
    ("ferroflow_phase_seconds", "counter"), ("ferroflow_wait_seconds", "counter"),
    ("ferroflow_sent_bytes", "counter"), ("ferroflow_received_bytes", "counter"),
    ("ferroflow_rpcs", "counter"), ("ferroflow_sessions", "gauge"),
    ("ferroflow_session_memory_bytes", "gauge"), ("ferroflow_collective_seconds", "histogram"),
    ("ferroflow_collectives", "counter"), ("ferroflow_elastic_epoch", "gauge"),
    ("ferroflow_recoveries", "counter"), ("ferroflow_straggler_rank", "gauge"),
    ("process_resident_memory_bytes", "gauge"), ("process_cpu_seconds", "counter"),
]:
    for families in (found, old):
        assert families[name].type == type, (name, families[name].type)
        assert families[name].documentation
assert found["ferroflow_task"].type == "info"
labels = [s.labels for s in found["ferroflow_task"].samples]
assert labels[0]["job_name"] == "worker" and labels[0]["task"] == "0", labels
phases = {s.labels["phase"] for s in found["ferroflow_phase_seconds"].samples}
assert phases == {"input", "compute", "send", "wait"}, phases
assert all(s.value >= 0 for f in found.values() for s in f.samples if "lag" not in s.name and "rank" not in s.name)
"#;

pub fn its_own_parser_reads_the_metrics_of_a_job() {
    let mut server = ferroflow(&["server", "--cluster", "worker=127.0.0.1:0", "--job", "worker"]);
    server.args(["--task", "0", "--http", "127.0.0.1:0"]).stdout(Stdio::piped());
    let mut server = Running(server.stderr(Stdio::null()).spawn().unwrap());
    let lines = Lines::of(server.0.stdout.take().unwrap());
    let url = lines.wait_for("http http://").replace("http http", "http");
    lines.wait_for("ready grpc://");
    let read = python().args(["-c", PROGRAM, &url]).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
}
