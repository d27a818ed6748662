//! `ferroflow server`: start, stop, and end.

use crate::common::{FOREVER, Lines, Running, ferroflow, free_addresses, own_loopback};
use ferroflow::cluster::ConnectOptions;
use ferroflow::graph::{Attrs, GraphDef, GraphDefSession, NodeDef};
use ferroflow::{Code, DType};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

struct Server {
    process: Running,
    errors: Lines,
}

fn start(mut command: Command) -> Server {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut process = Running(child);
    let out = Lines::of(process.0.stdout.take().unwrap());
    let errors = Lines::of(process.0.stderr.take().unwrap());
    out.wait_for("ready grpc://");
    Server { process, errors }
}

fn task(spec: &str, job: &str, index: &str) -> Server {
    start(ferroflow(&["server", "--cluster", spec, "--job", job, "--task", index]))
}

/// `wait` counts in `count`, then takes from an empty queue of the ps.
fn waiting() -> GraphDef {
    let node = |name: &str, op: &str, inputs: &[&str], attrs: Attrs| NodeDef {
        name: name.into(),
        op: op.into(),
        inputs: inputs.iter().map(|i| i.to_string()).collect(),
        device: "/job:ps/task:0".into(),
        attrs,
        ..NodeDef::default()
    };
    let of = |name: &str| Attrs::new().with(name, DType::Float);
    let types = Attrs::new().with("component_types", vec![DType::Float]);
    let one =
        Attrs::new().with("dtype", DType::Float).with("value", ferroflow::Tensor::scalar(1f32));
    GraphDef {
        nodes: vec![
            node("q", "FIFOQueueV2", &[], types.clone().with("shared_name", "q")),
            node(
                "v",
                "VarHandleOp",
                &[],
                of("dtype")
                    .with("shared_name", "v")
                    .with("shape", ferroflow::PartialShape::scalar()),
            ),
            node("one", "Const", &[], one),
            node("set", "AssignVariableOp", &["v", "one"], of("dtype")),
            node("count", "ReadVariableOp", &["v"], of("dtype")),
            node("add", "AssignAddVariableOp", &["v", "one"], of("dtype")),
            node("wait", "QueueDequeueV2", &["q", "^add"], types),
        ],
        ..GraphDef::default()
    }
}

#[test]
fn a_server_ends_its_steps_and_exits_after_sigterm() {
    let addresses = free_addresses(&own_loopback(), 2);
    let spec = format!("ps={};worker={}", addresses[0], addresses[1]);
    let (mut ps, mut worker) = (task(&spec, "ps", "0"), task(&spec, "worker", "0"));
    // One client on the task that leaves, and one on another task that needs it.
    let connect = |at: usize| {
        let target = format!("grpc://{}", addresses[at]);
        GraphDefSession::connect(&target, &waiting()).unwrap()
    };
    let (own, other) = (connect(0), connect(1));
    own.run_with(&[], &[], &["set"], None).unwrap();
    let errors: Vec<_> = std::thread::scope(|scope| {
        let wait = |session| {
            scope.spawn(move || GraphDefSession::run(session, &[], &["wait:0"]).unwrap_err())
        };
        let waiting = [wait(&own), wait(&other)];
        let count = || own.run(&[], &["count:0"]).unwrap()[0].scalar_value::<f32>().unwrap();
        while count() < 3.0 {
            std::thread::yield_now();
        }
        ps.process.signal("TERM");
        waiting.into_iter().map(|w| w.join().unwrap()).collect()
    });
    for e in errors {
        assert_eq!(e.code(), Code::Unavailable, "{e}");
        assert!(e.message().contains("the task is shutting down"), "{e}");
    }
    assert_eq!(ps.process.end().code(), Some(0));
    worker.process.signal("TERM");
    assert_eq!(worker.process.end().code(), Some(0));
}

#[test]
fn a_waiting_session_does_not_delay_the_exit_of_a_server() {
    let addresses = free_addresses(&own_loopback(), 2);
    let spec = format!("ps={};worker={}", addresses[0], addresses[1]);
    let mut ps = task(&spec, "ps", "0");
    let target = format!("grpc://{}", addresses[0]);
    std::thread::scope(|scope| {
        let config = ConnectOptions { timeout: FOREVER, ..ConnectOptions::default() };
        let graph = GraphDef::default();
        let waiting = scope
            .spawn(move || GraphDefSession::connect_with(&target, &graph, &config).err().unwrap());
        // After some time the log names the task that the session waits for.
        ps.errors.wait_for(
            "CreateSession still waiting for response from worker: /job:worker/replica:0/task:0",
        );
        ps.process.signal("TERM");
        let e = waiting.join().unwrap();
        assert_eq!(e.code(), Code::Unavailable, "{e}");
    });
    assert_eq!(ps.process.end().code(), Some(0));
}

#[test]
fn a_signal_at_any_moment_of_the_start_ends_a_server() {
    for delay in (0..40).step_by(2) {
        let spec = format!("worker={}", free_addresses(&own_loopback(), 1)[0]);
        let words = ["--cluster", &spec, "--job", "worker", "--task", "0", "--stop-timeout", "3"];
        let mut command = ferroflow(&[&["server"], &words[..]].concat());
        let mut server = Running(command.stdout(Stdio::null()).spawn().unwrap());
        std::thread::sleep(Duration::from_millis(delay));
        server.signal("TERM");
        let status = server.end();
        // Before the server handles signals, the signal itself ends the process.
        let is_ended = status.code() == Some(0) || status.signal() == Some(15);
        assert!(is_ended, "{status} after {delay} ms: the server did not notice the signal");
    }
}

#[test]
fn a_process_whose_errors_stay_unread_ends_after_a_signal() {
    let address = free_addresses(&own_loopback(), 1)[0].to_string();
    let spec = format!("worker={address}");
    let server = &[
        "server",
        "--cluster",
        &spec,
        "--job",
        "worker",
        "--task",
        "0",
        "--stop-timeout",
        "2",
    ][..];
    for words in [server, &["driver", "-np", "2", "--bind", &address]] {
        let (reader, mut full) = std::io::pipe().unwrap();
        full.write_all(&[b' '; 64 << 10]).unwrap();
        let mut command = ferroflow(words);
        // With a line for each connection, which has no room either.
        command.env("FERROFLOW_LOG", "debug").stdout(Stdio::null()).stderr(full);
        let mut process = Running(command.spawn().unwrap());
        std::thread::sleep(Duration::from_millis(500));
        // The process may be unable to accept: then the connection waits.
        let _ = std::net::TcpStream::connect(&address);
        std::thread::sleep(Duration::from_millis(100));
        process.signal("TERM");
        process.end();
        drop(reader);
    }
}

#[test]
fn a_parameter_server_ends_when_its_workers_are_done() {
    let addresses = free_addresses(&own_loopback(), 3);
    let spec = format!("ps={};chief={};worker={}", addresses[0], addresses[1], addresses[2]);
    let mut ps = start(ferroflow(&[
        "server",
        "--cluster",
        &spec,
        "--job",
        "ps",
        "--task",
        "0",
        "--exit-with-workers",
    ]));
    let (chief, worker) = (task(&spec, "chief", "0"), task(&spec, "worker", "0"));
    for _ in 0..2 {
        ps.errors.wait_for(" is there");
    }
    drop(chief);
    ps.errors.wait_for("/job:chief/replica:0/task:0 is gone");
    assert!(ps.process.0.try_wait().unwrap().is_none(), "a worker is left");
    drop(worker);
    assert_eq!(ps.process.end().code(), Some(0));
}

#[test]
fn tf_config_says_which_task_this_is() {
    let addresses = free_addresses(&own_loopback(), 2);
    let config = |job: &str, index: u32| {
        let (a, b) = (&addresses[0], &addresses[1]);
        let cluster = format!(r#"{{"chief":["{a}"],"worker":{{"4":"{b}"}}}}"#);
        format!(r#"{{"cluster":{cluster},"task":{{"type":"{job}","index":{index}}}}}"#)
    };
    let server = |job: &str, index: u32| {
        let mut command = ferroflow(&["server"]);
        command.env("TF_CONFIG", config(job, index));
        command
    };
    let _tasks = (start(server("chief", 0)), start(server("worker", 4)));
    let graph = GraphDef {
        nodes: vec![NodeDef {
            name: "c".into(),
            op: "Const".into(),
            device: "/job:worker/task:4".into(),
            attrs: Attrs::new()
                .with("dtype", DType::Float)
                .with("value", ferroflow::Tensor::scalar(5f32)),
            ..NodeDef::default()
        }],
        ..GraphDef::default()
    };
    let session = GraphDefSession::connect(&format!("grpc://{}", addresses[0]), &graph).unwrap();
    let got = session.run(&[], &["c:0"]).unwrap();
    assert_eq!(got[0].scalar_value::<f32>().unwrap(), 5.0);
    for (job, says) in [("evaluator", "needs no server"), ("ps", "no job \"ps\"")] {
        let out = server(job, 0).output().unwrap();
        let errors = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success() && errors.contains(says), "{errors}");
    }
}
