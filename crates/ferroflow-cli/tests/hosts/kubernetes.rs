//! Runs the pods of rendered manifests without Kubernetes. Each pod is a network namespace. A hosts
//! file replaces the cluster's DNS. A killed pod comes back with the same name and another address.

use crate::common::{FOREVER, Lines, PROGRAM, Running, ferroflow, folder};
use crate::elastic;
use ferroflow_testing::{child, this_test};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

fn ip(words: &[&str]) {
    let out = Command::new("ip").args(words).output().unwrap();
    let why = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "ip {}: {why}", words.join(" "));
}

/// A cluster with one JobSet.
struct Cluster {
    /// The prefix of its namespaces' names.
    prefix: String,
    /// The first three bytes of its addresses.
    network: String,
    next_address: u32,
    /// Folders, by the path at which pods mount them.
    mounts: Vec<(&'static str, PathBuf)>,
    name: String,
    jobset: Value,
    /// Addresses by host name.
    names: BTreeMap<String, String>,
    namespaces: Vec<String>,
}

impl Cluster {
    /// Applies the manifests that `ferroflow k8s render` writes.
    fn apply(name: &str, flags: &[&str]) -> Cluster {
        let render = ["k8s", "render", "--name", name, "--image", "any", "--checkpoints", "claim"];
        let out = ferroflow(&[&render[..], flags].concat()).output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let documents: Vec<Value> =
            text.split("\n---\n").map(|one| serde_yaml_ng::from_str(one).unwrap()).collect();
        let of_kind = |kind: &str| documents.iter().find(|d| d["kind"] == kind).unwrap();
        let credentials = folder("secret");
        for (file, content) in of_kind("Secret")["stringData"].as_object().unwrap() {
            std::fs::write(credentials.join(file), content.as_str().unwrap()).unwrap();
        }
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = std::process::id().wrapping_mul(8) + NEXT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("ffk{}", number % 100_000);
        let bridge = format!("{prefix}-net");
        ip(&["netns", "add", &bridge]);
        ip(&["-n", &bridge, "link", "add", "bridge", "type", "bridge"]);
        ip(&["-n", &bridge, "link", "set", "bridge", "up"]);
        Cluster {
            network: format!("10.{}.{}", 64 + (number >> 8) % 60, number & 255),
            next_address: 1,
            mounts: vec![
                ("/ferroflow/credentials", credentials),
                ("/checkpoints", folder("checkpoints")),
            ],
            name: name.into(),
            jobset: of_kind("JobSet").clone(),
            names: BTreeMap::new(),
            namespaces: vec![bridge],
            prefix,
        }
    }

    fn job(&self, role: &str) -> &Value {
        let jobs = self.jobset["spec"]["replicatedJobs"].as_array().unwrap();
        &jobs.iter().find(|job| job["name"] == role).unwrap()["template"]["spec"]
    }

    fn namespace(&self, role: &str, index: usize) -> String {
        format!("{}-{role}{index}", self.prefix)
    }

    /// Starts a pod with a new address.
    fn start(&mut self, role: &str, index: usize) -> Pod {
        let namespace = self.namespace(role, index);
        let address = format!("{}.{}", self.network, self.next_address);
        self.next_address += 1;
        if !self.namespaces.contains(&namespace) {
            self.namespaces.push(namespace.clone());
            let bridge = self.namespaces[0].clone();
            ip(&["netns", "add", &namespace]);
            ip(&["-n", &namespace, "link", "set", "lo", "up"]);
            let port = format!("v{role}{index}");
            let peer = ["type", "veth", "peer", "name", "eth0", "netns", &namespace];
            ip(&[&["-n", &bridge, "link", "add", &port], &peer[..]].concat());
            ip(&["-n", &bridge, "link", "set", &port, "master", "bridge", "up"]);
            std::fs::create_dir_all(format!("/etc/netns/{namespace}")).unwrap();
            // Pods that run see later changes of the same file.
            std::fs::write(format!("/etc/netns/{namespace}/hosts"), "").unwrap();
        }
        ip(&["-n", &namespace, "addr", "flush", "dev", "eth0"]);
        ip(&["-n", &namespace, "addr", "add", &format!("{address}/24"), "dev", "eth0"]);
        ip(&["-n", &namespace, "link", "set", "eth0", "up"]);
        let host = format!("{0}-{role}-0-{index}.{0}", self.name);
        self.names.insert(host, address);
        let entries = self.names.iter().map(|(name, address)| format!("{address} {name}\n"));
        let hosts = format!("127.0.0.1 localhost\n{}", entries.collect::<String>());
        for namespace in &self.namespaces[1..] {
            // The file is not truncated first: a pod that starts at this moment must find the
            // names.
            let path = format!("/etc/netns/{namespace}/hosts");
            let mut file = std::fs::File::options().write(true).open(path).unwrap();
            file.write_all(hosts.as_bytes()).unwrap();
            file.set_len(hosts.len() as u64).unwrap();
        }
        self.run(role, index, &namespace)
    }

    /// Runs the command of a pod as the kubelet does: with its variables, and with volumes.
    fn run(&self, role: &str, index: usize, namespace: &str) -> Pod {
        let container = &self.job(role)["template"]["spec"]["containers"][0];
        let mounted = |text: &str| {
            let mut text = text.to_string();
            for (path, folder) in &self.mounts {
                text = text.replace(path, folder.to_str().unwrap());
            }
            text
        };
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace]);
        for word in container["command"].as_array().unwrap() {
            match word.as_str().unwrap() {
                "ferroflow" => command.arg(PROGRAM),
                word => command.arg(mounted(word)),
            };
        }
        let mut variables: Vec<(String, String)> = Vec::new();
        for variable in container["env"].as_array().unwrap() {
            let name = variable["name"].as_str().unwrap().to_string();
            let field = variable["valueFrom"]["fieldRef"]["fieldPath"].as_str();
            let value = match field {
                Some("metadata.labels['jobset.sigs.k8s.io/jobset-name']") => self.name.clone(),
                Some("metadata.annotations['batch.kubernetes.io/job-completion-index']") => {
                    index.to_string()
                }
                Some("metadata.name") => format!("{}-{role}-0-{index}-x7c2v", self.name),
                Some(other) => panic!("unknown field {other}"),
                None => {
                    let mut value = mounted(variable["value"].as_str().unwrap());
                    for (name, known) in &variables {
                        value = value.replace(&format!("$({name})"), known);
                    }
                    value
                }
            };
            variables.push((name, value));
        }
        command.env_clear().env("PATH", std::env::var("PATH").unwrap()).envs(variables);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Running(command.spawn().unwrap());
        let lines = Lines::of(process.0.stdout.take().unwrap());
        let errors = Lines::of(process.0.stderr.take().unwrap());
        Pod { process, lines, errors }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for namespace in &self.namespaces {
            let _ = Command::new("ip").args(["netns", "del", namespace]).output();
            let _ = std::fs::remove_dir_all(format!("/etc/netns/{namespace}"));
        }
        for (_, folder) in &self.mounts {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

struct Pod {
    process: Running,
    lines: Lines,
    errors: Lines,
}

impl Pod {
    /// Waits until this worker has trained a global step beyond `step`. Returns that step.
    fn trains_beyond(&mut self, step: u64) -> u64 {
        let until = Instant::now() + FOREVER;
        loop {
            let line = self.lines.wait_for("{");
            let point: Value = serde_json::from_str(&line).unwrap();
            if let Some(now) = point["global_step"].as_u64().filter(|now| *now > step) {
                return now;
            }
            assert!(Instant::now() < until, "no step after {step}: {line}");
        }
    }

    /// Waits until this worker is done, as long as it reports steps. Returns its last report.
    fn ends(&mut self) -> Value {
        loop {
            let line: Value = serde_json::from_str(&self.lines.wait_for("{")).unwrap();
            if line["done"] == true {
                return line;
            }
        }
    }

    /// Kills the pod, as when a node is lost.
    fn kill(mut self) {
        self.process.signal("KILL");
        self.process.end();
    }

    /// Whether the first pod of a role answers with success.
    fn probe(&self, cluster: &Cluster, role: &str, port: u16, path: &str) -> bool {
        let script = format!(
            "exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET {path} HTTP/1.0\\r\\n\\r\\n' >&3; head -1 <&3"
        );
        let namespace = cluster.namespace(role, 0);
        let mut probe = Command::new("ip");
        probe.args(["netns", "exec", &namespace, "bash", "-c", &script]);
        String::from_utf8_lossy(&probe.output().unwrap().stdout).contains("200 OK")
    }
}

/// For each kind of pod: the job survives its loss and finishes.
pub fn a_cluster_goes_on_when_any_of_its_pods_is_replaced() {
    let program = ["--", "ferroflow", "train", "linear", "--async", "--steps", "4000"];
    let save = ["--save-steps", "100", "--out", "/checkpoints/linear"];
    let shape = ["--ps", "1", "--workers", "2", "--http", "9100"];
    let flags = [&shape[..], &program, &save].concat();
    let mut cluster = Cluster::apply("linear", &flags);
    assert_eq!(cluster.jobset["spec"]["successPolicy"]["targetReplicatedJobs"][0], "worker");
    let ps = cluster.start("ps", 0);
    ps.lines.wait_for("ready grpcs://");
    let answers = |port, path| ps.probe(&cluster, "ps", port, path);
    assert!(answers(8080, "/healthz") && answers(8080, "/readyz") && answers(9100, "/metrics"));
    let (mut chief, mut other) = (cluster.start("worker", 0), cluster.start("worker", 1));
    let step = chief.trains_beyond(200);
    let answers = |path| chief.probe(&cluster, "worker", 9100, path);
    assert!(answers("/readyz") && answers("/metrics") && !answers("/api/task"));
    // A worker is lost: the others continue, and its successor joins.
    other.kill();
    let step = chief.trains_beyond(step + 20);
    other = cluster.start("worker", 1);
    let step = other.trains_beyond(step);
    // A parameter server is lost: its variables come back from the last checkpoint.
    ps.kill();
    let ps = cluster.start("ps", 0);
    ps.lines.wait_for("ready grpcs://");
    let step = chief.trains_beyond(step.saturating_sub(400));
    // The chief is lost: the variables stay, and its successor writes checkpoints.
    chief.kill();
    let mut chief = cluster.start("worker", 0);
    chief.trains_beyond(step);
    let done = chief.ends();
    assert!(done["step"].as_i64().unwrap() >= 4000, "{done}");
    assert!(chief.process.end().success() && other.process.end().success());
    // The end of the workers ends the job: the controller stops the parameter server.
    let mut ps = ps;
    ps.process.signal("TERM");
    assert!(ps.process.end().success());
}

/// A rank cannot be replaced alone. All ranks fail with an error that names it, and the job starts
/// again.
pub fn an_all_reduce_job_starts_again_after_a_rank_is_lost() {
    let bench = ["bench", "allreduce", "--sizes", "4KiB", "--json", "--seconds"];
    let job =
        |seconds: &'static str| [&["-n", "3", "--", "ferroflow"], &bench[..], &[seconds]].concat();
    let mut cluster = Cluster::apply("ranks", &job("1000"));
    assert_eq!(cluster.job("rank")["backoffLimit"], 0);
    let mut pods: Vec<Pod> = (0..3).map(|rank| cluster.start("rank", rank)).collect();
    let connected = |address: &str| {
        let mut list = Command::new("ip");
        let namespace = cluster.namespace("rank", 1);
        let list = list.args(["netns", "exec", &namespace, "cat", "/proc/net/tcp"]).output();
        // State 1 is an open connection.
        let lines = String::from_utf8(list.unwrap().stdout).unwrap();
        lines.lines().filter(|l| l.contains(" 01 ")).count() >= 3 && !address.is_empty()
    };
    let until = Instant::now() + FOREVER;
    while !connected("rank 0") {
        assert!(Instant::now() < until, "the ranks do not connect");
        std::thread::sleep(Duration::from_millis(20));
    }
    pods.remove(1).kill();
    for mut pod in pods {
        pod.errors.wait_for("rank 1");
        assert!(!pod.process.end().success());
    }
    // All pods are new, as the controller starts them.
    let again = Cluster::apply("ranks", &job("0.05"));
    cluster.jobset = again.jobset.clone();
    let mut pods: Vec<Pod> = (0..3).map(|rank| cluster.start("rank", rank)).collect();
    assert!(pods[0].lines.wait_for("\"n\":3").contains("\"links\":\"tcp\""));
    for pod in &mut pods {
        assert!(pod.process.end().success());
    }
}

/// The ranks continue when the Job is scaled up or down and when a pod is lost. When the driver is
/// lost, all ranks end and start again.
pub fn an_elastic_job_grows_and_shrinks_with_its_pods() {
    if child::role().as_deref() == Some("rank") {
        return elastic::rank();
    }
    let rank = child::words(this_test!());
    let role = format!("{}=rank", child::ROLE);
    let flags = ["-n", "2", "--min-np", "1", "--max-np", "4", "-x", &role];
    let more = ["-x", "STOP_FILE=/checkpoints/stop", "--"];
    let rank: Vec<&str> = rank.iter().map(String::as_str).collect();
    let mut cluster = Cluster::apply("grows", &[&flags[..], &more, &rank].concat());
    let driver = cluster.start("driver", 0);
    driver.lines.wait_for("ready 0.0.0.0:");
    let (first, second) = (cluster.start("rank", 0), cluster.start("rank", 1));
    first.lines.wait_for("a rank among 2");
    // Scaled up, and down again: the kubelet sends SIGTERM.
    let mut third = cluster.start("rank", 2);
    first.lines.wait_for("a rank among 3");
    third.process.signal("TERM");
    third.process.end();
    first.lines.wait_for("a rank among 2");
    // A pod is lost, and its successor has another address.
    second.kill();
    first.lines.wait_for("a rank among 1");
    let mut second = cluster.start("rank", 1);
    first.lines.wait_for("a rank among 2");
    // The driver is lost: the ranks cannot continue without it.
    driver.kill();
    let mut first = first;
    assert!(!first.process.end().success() && !second.process.end().success());
    let mut driver = cluster.start("driver", 0);
    driver.lines.wait_for("ready 0.0.0.0:");
    let mut ranks = [cluster.start("rank", 0), cluster.start("rank", 1)];
    ranks[0].lines.wait_for("a rank among 2");
    std::fs::write(cluster.mounts[1].1.join("stop"), "").unwrap();
    for rank in &mut ranks {
        rank.lines.wait_for("all steps were made");
        assert!(rank.process.end().success());
    }
    // A pod that comes too late ends without an error. Then the controller ends the driver.
    assert!(cluster.start("rank", 2).process.end().success());
    driver.process.signal("TERM");
    assert!(driver.process.end().success());
}
