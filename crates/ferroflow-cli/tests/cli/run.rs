//! `ferroflow run`: whole jobs, started and ended.
#![allow(clippy::unwrap_used)]

mod common;

use common::netns::{self, Cable};
use common::{Lines, PROGRAM, Running, ferroflow, folder};
use ferroflow::hvd;
use ferroflow::prelude::{GraphSession, graph};
use ferroflow::{
    ConnectOptions, GraphDef, Server, ServerOptions, Session, TfConfig, default_catalog,
};
use std::process::{Output, Stdio};
use std::sync::Arc;

fn run(words: &[&str]) -> Output {
    ferroflow(&[&["run"], words].concat()).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_process_is_told_its_place_and_the_ps_end_with_the_workers() {
    let out = run(&["--ps", "2", "--workers", "2", "--chief", "--", "sh", "-c", "echo $TF_CONFIG"]);
    let said = text(&out.stdout);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let line = |label: &str| {
        let found = said.lines().find_map(|l| l.strip_prefix(&format!("[{label}] ")));
        found.unwrap_or_else(|| panic!("no line of {label} in\n{said}")).to_string()
    };
    let chief: serde_json::Value = serde_json::from_str(&line("chief")).unwrap();
    let worker: serde_json::Value = serde_json::from_str(&line("worker 0")).unwrap();
    assert_eq!(chief["cluster"], worker["cluster"]);
    assert_eq!(worker["task"], serde_json::json!({"type": "worker", "index": 0}));
    // Nobody serves the parameter servers' addresses any more.
    for ps in chief["cluster"]["ps"].as_array().unwrap() {
        let address = ps.as_str().unwrap();
        assert!(std::net::TcpStream::connect(address).is_err(), "{address}");
    }
}

#[test]
fn the_first_failure_is_reported_and_gives_the_exit_code() {
    let script = r#"case "$TF_CONFIG" in *'"type":"worker"'*'"index":1'*|*'"index":1,"type":"worker"'*)
        echo it went wrong >&2; exit 7;; esac; exec sleep 1000"#;
    let out = run(&["--ps", "1", "--workers", "2", "--", "sh", "-c", script]);
    let errors = text(&out.stderr);
    assert_eq!(out.status.code(), Some(7), "{errors}");
    assert!(errors.contains("worker 1 (process "), "{errors}");
    assert!(errors.contains("was the first to fail: it ended with exit code 7"), "{errors}");
    assert!(errors.contains("\n    it went wrong\n"), "{errors}");
}

#[test]
fn a_parameter_server_that_is_killed_is_the_first_cause() {
    let script = r#"case "$TF_CONFIG" in *'"type":"ps"'*) kill -9 $$;; esac; exec sleep 1000"#;
    let out = run(&["--workers", "1", "--serve", "none", "--", "sh", "-c", script]);
    let errors = text(&out.stderr);
    assert_eq!(out.status.code(), Some(137), "{errors}");
    assert!(errors.contains("ps 0 (process "), "{errors}");
    assert!(errors.contains("was killed by signal 9"), "{errors}");
}

#[test]
fn a_signal_ends_the_whole_job() {
    let mut command =
        ferroflow(&["run", "--workers", "1", "--", "sh", "-c", "echo up; sleep 1000"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut job = Running(child);
    let lines = Lines::of(job.0.stdout.take().unwrap());
    lines.wait_for("[worker 0] up");
    job.signal("TERM");
    assert_eq!(job.end().code(), Some(143));
}

/// What the jobs below run: this file's own program, as a task of a cluster.
const TASK: &str = "a_task_of_a_job";

/// Adds to a counter on the parameter server, on a server of its own, and says what it came to.
#[test]
fn a_task_of_a_job() {
    let Some(config) = TfConfig::from_env().unwrap() else { return };
    let options = ServerOptions::of(&config);
    let task = format!("/job:{}/task:{}", config.job, config.task);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(Server::bind(options, default_catalog())).unwrap();
    let target = server.target().to_string();
    runtime.spawn(server.serve(std::future::pending()));
    let g = graph();
    let (counter, one) = g.device("/job:ps/task:0", || {
        let one = g.device(task.as_str(), || g.constant(1.0));
        let counter = g.variable("counter", 0.0);
        (counter.clone(), counter.assign_add(&one))
    });
    let init = g.global_initializer();
    let ready = counter.is_initialized();
    // Others may be done already.
    let device_filters = vec!["/job:ps".into(), task];
    let options = ConnectOptions { device_filters, ..ConnectOptions::default() };
    let steps = Session::connect_with(&target, &GraphDef::default(), &options).unwrap();
    let session = GraphSession::new(&g, Arc::new(steps)).unwrap();
    if config.is_chief() {
        session.run(&init).unwrap();
    }
    while !session.run(ready.scalar::<bool>()).unwrap() {
        std::thread::yield_now();
    }
    for _ in 0..10 {
        session.run(&one).unwrap();
    }
    while session.run(counter.scalar::<f32>()).unwrap() < 20.0 {
        std::thread::yield_now();
    }
    println!("\nall have added");
}

/// A job of one ps and two workers that run [`TASK`].
fn adding(words: &[&str]) -> Output {
    let program = std::env::current_exe().unwrap().display().to_string();
    let job = ["--ps", "1", "--workers", "2"];
    let task = ["--", &program, "--exact", TASK, "--nocapture"];
    run(&[&job, words, &task].concat())
}

#[test]
fn a_cluster_works_together() {
    let out = adding(&["--chief"]);
    let said = text(&out.stdout);
    assert!(out.status.success(), "{said}{}", text(&out.stderr));
    for task in ["chief", "worker 0"] {
        assert!(said.contains(&format!("[{task}] all have added\n")), "{said}");
    }
}

#[test]
fn a_cluster_works_together_on_several_hosts() {
    if let Some(why) = netns::missing() {
        eprintln!("skipped, since hosts are network namespaces here: {why}");
        return;
    }
    let cable = Cable::between_two();
    let hosts = format!("{}:1,{}:2", cable.near(), cable.far());
    let shell = ["-H", hosts.as_str(), "--rsh", "ip netns exec {host} sh -c"];
    let out = adding(&shell);
    let said = text(&out.stdout);
    assert!(out.status.success(), "{said}{}", text(&out.stderr));
    assert!(said.contains(&format!("[ps 0] ready grpc://{}:", cable.near())), "{said}");
    assert!(said.contains("[worker 1] all have added\n"), "{said}");
    // A host whose process fails is named.
    let job = [&["--ps", "1", "--workers", "1"][..], &shell, &["--", "sh", "-c", "exit 3"]];
    let out = run(&job.concat());
    let errors = text(&out.stderr);
    assert_eq!(out.status.code(), Some(3), "{errors}");
    assert!(errors.contains(&format!(" on {}) was the first to fail", cable.far())), "{errors}");
}

#[test]
fn servers_help_to_sum_or_sum_everything() {
    let bench = ["--", PROGRAM, "bench", "layers", "--shrink", "20000", "--step-time", "5ms"];
    for only in [false, true] {
        let flag = if only { &["--servers-only"][..] } else { &[] };
        let job = [&["-np", "2", "--servers", "1"], flag, &bench, &["--steps", "2", "--json"]];
        let out = run(&job.concat());
        let said = text(&out.stdout);
        assert!(out.status.success(), "{said}{}", text(&out.stderr));
        // A server that split the sums otherwise than the ranks would have been refused.
        let line = said.lines().find_map(|l| l.strip_prefix("[0] ")).unwrap();
        let figures: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(figures["n"], 2, "{figures}");
        assert_eq!(figures["servers"], 1, "{figures}");
        assert_eq!(figures["servers_only"], only, "{figures}");
    }
    let out = run(&["-np", "2", "--servers-only", "--", "true"]);
    assert!(text(&out.stderr).contains("--servers <K>"), "{}", text(&out.stderr));
}

#[test]
fn what_servers_cannot_help_with_is_refused_at_once() {
    let bench = ["--", PROGRAM, "bench", "allreduce", "--sizes", "1MB"];
    let out = run(&[&["-np", "2", "--servers", "1"][..], &bench].concat());
    let errors = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{errors}");
    assert!(errors.contains("`bench layers` has servers help"), "{errors}");
}

#[test]
fn a_mistaken_command_line_is_told_what_to_write() {
    for (line, says) in [
        ("run -np 2 sh", "put the program and its arguments after '--': -- sh"),
        ("run -np 2 sh -c ls", "put the program and its arguments after '--': -- sh"),
        ("run -np 0 -- true", "-np must be at least 1"),
        ("run -n 2 -H a:1 -- true", "2 processes for 1 slot: add slots, such as -H a:2"),
        ("run -np 1 --servers 2 --server-hosts a -- true", "such as --server-hosts a:2"),
        (
            "run -np 1 -H far --rsh no-such-shell -- true",
            "\"no-such-shell\", the remote shell (--rsh)",
        ),
        ("bench allreduce -n 0", "-n must be at least 1"),
        ("bench allreduce --algorithm star", "no all-reduce algorithm \"star\"; there are ring"),
        ("bench allreduce --sizes 4,3", "--sizes: 3 is no whole number of floats"),
        ("bench allreduce --transport pigeon", "no links \"pigeon\""),
        ("bench layers --step-time never", "\"never\" is no duration"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let out = ferroflow(&words).stdin(Stdio::null()).output().unwrap();
        let errors = text(&out.stderr);
        assert!(!out.status.success() && out.stdout.is_empty(), "{line}: {errors}");
        // Once, and by nobody but this command.
        assert_eq!(errors.matches(says).count(), 1, "{line}: {errors}");
        assert!(!errors.contains("first to fail"), "{line}: {errors}");
    }
}

#[test]
fn one_rank_is_alone() {
    let words = ["bench", "allreduce", "-n", "1", "--sizes", "4", "--seconds", "0.01"];
    let out = ferroflow(&words).output().unwrap();
    let said = text(&out.stdout);
    assert!(out.status.success(), "{said}{}", text(&out.stderr));
    assert!(said.starts_with("all-reduce (sum of float) of one rank alone\n"), "{said}");
}

#[test]
fn ranks_that_mpirun_starts_find_each_other() {
    let mpirun = |words: &[&str]| {
        let mut command = std::process::Command::new("mpirun");
        // Open MPI's own hesitations; others do not know these.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
        command.env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
        command.args(["-n", "2"]).args(words).stdin(Stdio::null()).output()
    };
    match mpirun(&["true"]) {
        Ok(out) if out.status.success() => {}
        Ok(out) => return eprintln!("skipped, mpirun does not work here: {}", text(&out.stderr)),
        Err(e) => return eprintln!("skipped, there is no mpirun: {e}"),
    }
    let bench = ["bench", "allreduce", "--sizes", "4,4KiB", "--seconds", "0.01", "--json"];
    let out = mpirun(&[&[PROGRAM], &bench[..]].concat()).unwrap();
    let said = text(&out.stdout);
    assert!(out.status.success(), "{said}{}", text(&out.stderr));
    let lines: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines.iter().all(|figures| figures["n"] == 2), "{said}");
}

#[test]
fn ranks_are_told_who_they_are_and_named_in_what_they_print() {
    let script = "echo rank $FERROFLOW_RANK of $WORLD_SIZE; echo oh dear >&2";
    let out = run(&["-np", "2", "--", "sh", "-c", script]);
    let said = text(&out.stdout);
    assert!(out.status.success(), "{said}{}", text(&out.stderr));
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] rank 0 of 2", "[1] rank 1 of 2"]);
    let errors = text(&out.stderr);
    assert!(errors.contains("[0] oh dear\n") && errors.contains("[1] oh dear\n"), "{errors}");
}

#[test]
fn the_rank_that_fails_first_ends_the_others_and_gives_the_exit_code() {
    let script = "test $RANK = 1 || exec sleep 1000; echo it went wrong >&2; exit 5";
    let out = run(&["-np", "2", "--", "sh", "-c", script]);
    let errors = text(&out.stderr);
    assert_eq!(out.status.code(), Some(5), "{errors}");
    assert!(errors.contains("rank 1 (process "), "{errors}");
    assert!(errors.contains("was the first to fail: it ended with exit code 5"), "{errors}");
    assert!(errors.contains("\n    it went wrong\n"), "{errors}");
}

/// A script that says how many slots this host has, and changes its mind.
struct Discovery(std::path::PathBuf);

impl Discovery {
    fn new() -> Discovery {
        let found = Discovery(folder("discovery"));
        // Written by another process: what this one holds open for a moment, a child of another test may hold,
        // too, and nobody can run it.
        let write = r#"printf '#!/bin/sh\ncat "%s"\n' "$1" > "$2" && chmod +x "$2""#;
        let written = ["-c", write, "sh", &found.path("hosts"), &found.path("discover.sh")];
        assert!(std::process::Command::new("sh").args(written).status().unwrap().success());
        found
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn find(&self, slots: usize) {
        // Written aside and moved, so that nobody reads half of it.
        std::fs::write(self.path("new"), format!("localhost:{slots}\n")).unwrap();
        std::fs::rename(self.path("new"), self.path("hosts")).unwrap();
    }

    /// An elastic job of 1 to 3 processes that follows it, and the lines of its output and errors.
    fn job(&self, program: &[&str]) -> (Running, Lines, Lines) {
        let job = ["run", "-np", "2", "--min-np", "1", "--max-np", "3", "--host-discovery-script"];
        let script = self.path("discover.sh");
        let job = [&job[..], &[&script, "--"], program].concat();
        let mut command = ferroflow(&job);
        command.env("STOP_FILE", self.path("stop"));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut job = Running(child);
        let lines = Lines::of(job.0.stdout.take().unwrap());
        let errors = Lines::of(job.0.stderr.take().unwrap());
        (job, lines, errors)
    }

    /// Tells the job that it is done.
    fn stop(&self) {
        std::fs::write(self.path("stop"), "").unwrap();
    }
}

impl Drop for Discovery {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn an_elastic_job_follows_the_slots_that_a_script_finds() {
    let script = Discovery::new();
    script.find(1);
    let program = "trap 'echo leaves; exit 0' TERM; echo is up
        until [ -e \"$STOP_FILE\" ]; do sleep 0.1; done";
    let (mut job, lines, errors) = script.job(&["sh", "-c", program]);
    errors.wait_for("starting 1 of 2 processes");
    lines.wait_for("[0] is up");
    // Two come at once, in whatever order.
    script.find(3);
    let mut both = [lines.wait_for("is up"), lines.wait_for("is up")];
    both.sort_unstable();
    assert_eq!(both, ["[1] is up", "[2] is up"]);
    // Those that came last go, and the job goes on.
    script.find(1);
    let mut both = [lines.wait_for("leaves"), lines.wait_for("leaves")];
    both.sort_unstable();
    assert_eq!(both, ["[1] leaves", "[2] leaves"]);
    script.find(2);
    lines.wait_for("[3] is up");
    script.stop();
    assert_eq!(job.end().code(), Some(0));
}

/// What the job below runs: this file's own program, as a rank of an elastic job.
const RANK: &str = "a_rank_of_an_elastic_job";

/// Adds 1 to a variable in each step, until it is told that this is enough.
#[test]
fn a_rank_of_an_elastic_job() {
    use ferroflow::prelude::{Optimizer, Sgd, Tensor, local_session};
    if std::env::var_os("FERROFLOW_ELASTIC").is_none() {
        return;
    }
    let stop = std::env::var("STOP_FILE").unwrap();
    let job = hvd::elastic_init().unwrap();
    let g = job.world().graph();
    let x = g.variable("x", 0.0);
    let train = job.world().optimizer(Sgd::new(1.0)).minimize(&(&*x * -1.0));
    let init = g.global_initializer();
    let session = local_session(&g).unwrap();
    session.run(&init).unwrap();
    let mut state = hvd::elastic::State::new(&g, &session).unwrap();
    let sum = job.run(&mut state, |world, state| {
        println!("\na rank among {}", world.size());
        loop {
            session.run(&train)?;
            state.step += 1;
            state.commit(world)?;
            let over = Tensor::scalar(u8::from(std::path::Path::new(&stop).exists()));
            let over = world.all_reduce_value("over", over, hvd::Reduction::Max)?;
            if over.scalar_value::<u8>()? == 1 {
                return session.run(x.scalar::<f32>());
            }
        }
    });
    // Whatever came and went, every step was made once.
    assert_eq!(sum.unwrap(), state.step as f32);
    println!("\nall steps were made");
}

#[test]
fn ranks_go_on_as_slots_come_and_go() {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    if std::net::ToSocketAddrs::to_socket_addrs(&(host.trim(), 0)).is_err() {
        return eprintln!("skipped, this host's name is no address: {host}");
    }
    let script = Discovery::new();
    script.find(2);
    let program = std::env::current_exe().unwrap().display().to_string();
    let (mut job, lines, _errors) = script.job(&[&program, "--exact", RANK, "--nocapture"]);
    lines.wait_for("[0] a rank among 2");
    script.find(3);
    lines.wait_for("[0] a rank among 3");
    script.find(1);
    lines.wait_for("[0] a rank among 1");
    script.stop();
    lines.wait_for("[0] all steps were made");
    assert_eq!(job.end().code(), Some(0));
}
