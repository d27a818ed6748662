//! `ferroflow doctor` finds each of the faults that these tests set up.

use crate::common::netns::Cable;
use crate::common::{Lines, PROGRAM, Running, ferroflow, folder};
use ferroflow_cluster::rpc::{Chunks, RpcRequest, RpcServer, RpcStatus};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// The faults that the doctor finds, by the name of the check.
fn faults(command: &mut Command) -> Vec<(String, String)> {
    let out = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(out.stdout).unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    let findings: Vec<Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(findings.len() > 4, "{said}{errors}");
    let faults: Vec<&Value> = findings.iter().filter(|found| found["health"] == "fault").collect();
    assert_eq!(out.status.success(), faults.is_empty(), "{said}{errors}");
    let text = |found: &Value, key: &str| found[key].as_str().unwrap_or_default().to_string();
    for fault in &faults {
        assert!(!text(fault, "advice").is_empty(), "no advice: {fault}");
    }
    faults.iter().map(|fault| (text(fault, "check"), text(fault, "what"))).collect()
}

fn doctor(words: &[&str]) -> Command {
    ferroflow(&[&["doctor", "--timeout", "2"], words].concat())
}

/// Checks that the doctor finds exactly one fault, by this check and with this text.
fn finds(check: &str, text: &str, command: &mut Command) {
    let found = faults(command);
    assert_eq!(found.len(), 1, "{check}: {found:?}");
    assert!(found[0].0 == check && found[0].1.contains(text), "{check} {text}: {found:?}");
}

pub fn a_healthy_host_has_no_fault() {
    let found = faults(&mut doctor(&["--dir", std::env::temp_dir().to_str().unwrap()]));
    assert!(found.is_empty(), "{found:?}");
}

/// Faults 1 to 5: limits of this host.
pub fn faults_of_a_host_are_found() {
    let temporary = std::env::temp_dir();
    let words = format!("{PROGRAM} doctor --dir {}", temporary.display());
    let shell = |script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        shell
    };
    finds("descriptors", "64 at most", &mut shell(&format!("ulimit -n 64; {words}")));
    let own = |script: &str| {
        let mut shell = Command::new("unshare");
        shell.args(["-m", "sh", "-c", script]);
        shell
    };
    let small = "mount -t tmpfs -o size=256k tmpfs";
    finds("shared-memory", "/dev/shm has 0 MiB", &mut own(&format!("{small} /dev/shm; {words}")));
    let full = folder("full");
    let script = format!("{small} {0}; {PROGRAM} doctor --dir {0}", full.display());
    finds("disk", "cannot hold a checkpoint", &mut own(&script));
    std::fs::remove_dir_all(&full).unwrap();
    finds("disk", "No such file", &mut doctor(&["--dir", full.to_str().unwrap()]));
    let gpus = doctor(&["--gpus", "1000", "--dir", temporary.to_str().unwrap()]).output().unwrap();
    assert!(String::from_utf8_lossy(&gpus.stdout).contains("1000 GPUs were expected"));
}

/// Faults 6 and 7: credentials that other tasks would refuse.
pub fn faults_of_credentials_are_found() {
    let (certs, temporary) = (folder("certs"), std::env::temp_dir());
    let made = ferroflow(&["certs", "--out", certs.to_str().unwrap(), "job", "other"]).output();
    assert!(made.unwrap().status.success());
    let check = |name: &str| {
        let folder = certs.join(name);
        let words = ["--credentials", folder.to_str().unwrap()];
        doctor(&[&words[..], &["--dir", temporary.to_str().unwrap()]].concat())
    };
    assert!(faults(&mut check("job")).is_empty());
    let expired = ferroflow(&["certs", "--out", certs.to_str().unwrap(), "--days", "0", "old"]);
    assert!({ expired }.output().unwrap().status.success());
    // A certificate is valid until the end of its last second.
    let until = std::time::Instant::now() + crate::common::FOREVER;
    while faults(&mut check("old")).is_empty() {
        assert!(std::time::Instant::now() < until, "an expired certificate is accepted");
    }
    finds("certificates", "would refuse", &mut check("old"));
    std::fs::copy(certs.join("other/tls.key"), certs.join("job/tls.key")).unwrap();
    let found = faults(&mut check("job"));
    assert_eq!(found[0].0, "certificates", "{found:?}");
    let key = certs.join("other/tls.key");
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    finds("certificates", "can be read by others", &mut check("other"));
    std::fs::remove_dir_all(&certs).unwrap();
}

/// Faults 8 to 11: names, ports, versions and clocks of tasks.
pub fn faults_of_tasks_are_found() {
    let temporary = std::env::temp_dir();
    let cluster = |spec: &str| doctor(&["--cluster", spec, "--dir", temporary.to_str().unwrap()]);
    finds("host-names", "nowhere.invalid", &mut cluster("ps=nowhere.invalid:2222"));
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let spec = format!("ps={}", other.local_addr().unwrap());
    finds("ports", "another program", &mut cluster(&spec));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let answering = |version: &'static str, ahead: f64| {
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let service = move |_: RpcRequest| async move {
            let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64() + ahead;
            let answer = json!({"version": version, "unix_seconds": now}).to_string();
            Ok::<Chunks, RpcStatus>(Chunks::from(bytes::Bytes::from(answer)))
        };
        let serving =
            RpcServer::default().serve(listener, Arc::new(service), std::future::pending());
        runtime.spawn(serving);
        format!("ps={address}")
    };
    let own = env!("CARGO_PKG_VERSION");
    assert!(faults(&mut cluster(&answering(own, 0.0))).is_empty());
    finds("versions", "0.0.7", &mut cluster(&answering("0.0.7", 0.0)));
    finds("clocks", "behind", &mut cluster(&answering(own, -90.0)));
}

/// Faults 12 to 14: paths between hosts.
pub fn faults_of_a_network_are_found() {
    let cable = Cable::from_here();
    let (temporary, address) = (std::env::temp_dir(), format!("{}:2222", cable.far()));
    let spec = format!("ps={address}");
    let check = || doctor(&["--cluster", &spec, "--dir", temporary.to_str().unwrap()]);
    finds("ports", "nothing listens", &mut check());
    let mut server = Command::new("ip");
    server.args([
        "netns",
        "exec",
        cable.far(),
        PROGRAM,
        "server",
        "--insecure",
        "--cluster",
        &spec,
    ]);
    server.args(["--job", "ps", "--task", "0"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut server = Running(server.stderr(Stdio::null()).spawn().unwrap());
    Lines::of(server.0.stdout.take().unwrap()).wait_for("ready");
    assert!(faults(&mut check()).is_empty());
    cable.lose_long_packets();
    finds("mtu", "but not long ones", &mut check());
    cable.pull();
    finds("ports", "does not answer", &mut check());
}
