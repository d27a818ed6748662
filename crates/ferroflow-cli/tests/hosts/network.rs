//! Tasks on hosts with slow links, and tasks that restart at another address.

use crate::common::faults::document::{NEW_ADDRESS, SLOW_LINK};
use crate::common::netns::{Cable, no_traffic_shaping};
use crate::common::{FOREVER, Lines, PROGRAM, Running, ferroflow, folder, free_addresses};
use ferroflow::cluster::{ConnectOptions, Credentials};
use ferroflow::graph::{Attrs, GraphDef, GraphDefSession, NodeDef};
use ferroflow::{Code, DType, Error, Tensor};
use ferroflow_testing::needs::Need;
use std::path::Path;
use std::process::{Command, Stdio};

/// Links that tc can slow down.
pub const SLOW_LINKS: Need = Need { missing: no_traffic_shaping };

/// The name of the ps's host, at any address.
const HOST: &str = "ps.ferroflow.test";

/// A value that goes from the worker to the ps and back.
fn there_and_back() -> GraphDef {
    let node = |name: &str, op: &str, inputs: &[&str], device: &str, attrs: Attrs| NodeDef {
        name: name.into(),
        op: op.into(),
        inputs: inputs.iter().map(|i| i.to_string()).collect(),
        device: device.into(),
        attrs,
        ..NodeDef::default()
    };
    let float = || Attrs::new().with("T", DType::Float);
    let (ps, worker) = ("/job:ps/task:0", "/job:worker/task:0");
    let nodes = vec![
        node("x", "Placeholder", &[], worker, Attrs::new().with("dtype", DType::Float)),
        node("there", "Neg", &["x"], ps, float()),
        node("back", "Neg", &["there"], worker, float()),
    ];
    GraphDef { nodes, ..GraphDef::default() }
}

/// A worker on this host, and a ps on another host. A hosts file has the name of that host.
struct Cluster {
    dir: std::path::PathBuf,
    spec: String,
    target: String,
    worker: Option<Running>,
}

impl Cluster {
    fn start(first: &Cable) -> Cluster {
        let dir = folder("network");
        let worker = free_addresses(first.near(), 1).remove(0);
        let spec = format!("ps={HOST}:2222;worker={worker}");
        let made = ferroflow(&["certs", "--cluster", &spec, "client", "--out"]).arg(&dir).output();
        assert!(made.unwrap().status.success());
        let mut cluster = Cluster { dir, spec, target: format!("grpcs://{worker}"), worker: None };
        cluster.name(first.far());
        // The cluster's own hosts file.
        let mount = format!("mount --bind {} /etc/hosts", cluster.dir.join("hosts").display());
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &format!("{mount} && exec \"$0\" \"$@\""), PROGRAM]);
        cluster.worker = Some(cluster.serve(command, "worker", first.near()));
        cluster
    }

    /// Gives the ps an address. Writes into the same file, as resolvers do.
    fn name(&self, address: &str) {
        let hosts = format!("127.0.0.1 localhost\n{address} {HOST}\n");
        std::fs::write(self.dir.join("hosts"), hosts).unwrap();
    }

    fn ps(&self, cable: &Cable) -> Running {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", cable.far(), PROGRAM]);
        self.serve(command, "ps", cable.far())
    }

    fn serve(&self, mut command: Command, job: &str, bind: &str) -> Running {
        command.args(["server", "--cluster", &self.spec, "--job", job, "--task", "0"]);
        command.args(["--bind", bind, "--session-timeout", "20", "--threads", "2"]);
        command.arg("--credentials").arg(self.dir.join(format!("{job}-0")));
        let log = std::fs::File::create(self.dir.join(format!("{job}.log"))).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut task = Running(command.spawn().unwrap());
        Lines::of(task.0.stdout.take().unwrap()).wait_for("ready grpcs://");
        task
    }

    fn session(&self) -> GraphDefSession {
        let credentials = Some(Credentials::from_folder(&self.dir.join("client")).unwrap());
        let options = ConnectOptions { timeout: FOREVER, credentials, ..ConnectOptions::default() };
        GraphDefSession::connect_with(&self.target, &there_and_back(), &options)
            .unwrap_or_else(|e| panic!("{e}\n{}", self.logs()))
    }

    fn logs(&self) -> String {
        let log = |job: &str| std::fs::read_to_string(self.dir.join(job)).unwrap_or_default();
        format!("{}{}", log("ps.log"), log("worker.log"))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.worker.take());
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn run(session: &GraphDefSession, value: Tensor) -> Result<Tensor, Error> {
    Ok(session.run(&[("x:0", value)], &["back:0"])?.remove(0))
}

/// Checks that the page of faults states the tested outcome.
fn stated(row: (&str, &str)) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/faults.md");
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page.contains(&format!("| {} | {} |", row.0, row.1)), "{row:?}");
}

pub fn a_task_that_restarts_at_another_address_is_found_again() {
    let [old, new] = [Cable::from_here(), Cable::from_here()];
    new.reaches(&old);
    let cluster = Cluster::start(&old);
    let first = cluster.ps(&old);
    let session = cluster.session();
    assert_eq!(run(&session, Tensor::scalar(7f32)).unwrap(), Tensor::scalar(7f32));
    // Its host vanishes: no connection is closed.
    old.pull();
    drop(first);
    let _second = cluster.ps(&new);
    cluster.name(new.far());
    // A step of the old session ends. The variables and graphs of the old task are gone.
    let e = run(&session, Tensor::scalar(7f32)).unwrap_err();
    assert!(matches!(e.code(), Code::Unavailable | Code::Aborted), "{e}");
    assert!(e.message().contains("/job:ps/replica:0/task:0"), "{e}");
    let session = cluster.session();
    for len in [1, 100_000] {
        let value = Tensor::vector(&vec![7f32; len]);
        assert_eq!(run(&session, value.clone()).unwrap(), value);
    }
    stated(NEW_ADDRESS);
}

pub fn a_session_finds_a_task_at_its_new_address_without_a_failed_step() {
    let [old, new] = [Cable::from_here(), Cable::from_here()];
    new.reaches(&old);
    let cluster = Cluster::start(&old);
    let first = cluster.ps(&old);
    assert!(run(&cluster.session(), Tensor::scalar(7f32)).is_ok());
    old.pull();
    drop(first);
    let _second = cluster.ps(&new);
    cluster.name(new.far());
    assert!(run(&cluster.session(), Tensor::scalar(7f32)).is_ok(), "{}", cluster.logs());
}

pub fn a_slow_link_is_not_taken_for_a_dead_task() {
    let cable = Cable::from_here();
    let cluster = Cluster::start(&cable);
    let _ps = cluster.ps(&cable);
    let session = cluster.session();
    assert!(run(&session, Tensor::scalar(7f32)).is_ok());
    // Each direction needs longer than the timeout of a silent task.
    cable.slow_down("4mbit");
    let value = Tensor::vector(&vec![7f32; 400_000]);
    assert_eq!(run(&session, value.clone()).unwrap(), value, "{}", cluster.logs());
    assert_eq!(run(&cluster.session(), Tensor::scalar(7f32)).unwrap(), Tensor::scalar(7f32));
    stated(SLOW_LINK);
}
