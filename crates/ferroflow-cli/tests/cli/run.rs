//! `ferroflow run`: whole jobs, started and ended.

use crate::common::discovery::Discovery;
use crate::common::{Lines, PROGRAM, Running, ferroflow, task};
use ferroflow_testing::{child, this_test};
use std::process::{Output, Stdio};

fn run(words: &[&str]) -> Output {
    ferroflow(&[&["run"], words].concat()).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_report_at_the_end_names_the_slow_worker_its_phase_and_since_when() {
    if child::role().as_deref() == Some("task") {
        return task::run_steps_with_slow_input();
    }
    let out = task::job(this_test!(), &[]);
    let errors = text(&out.stderr);
    assert!(out.status.success(), "{errors}");
    let report: Vec<&str> = errors.lines().filter(|line| line.contains("straggler: ")).collect();
    assert_eq!(report.len(), 1, "{errors}");
    assert!(report[0].contains("straggler: worker 1 spends "), "{}", report[0]);
    assert!(report[0].contains(" ms of each step in input, the others "), "{}", report[0]);
    assert!(report[0].contains("(since ") && report[0].ends_with(" UTC)"), "{}", report[0]);
    assert!(!text(&out.stdout).contains("http://"), "{}", text(&out.stdout));
}

#[test]
fn every_process_gets_its_tf_config_and_the_ps_end_with_the_workers() {
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
    // The parameter servers have ended: their addresses refuse connections.
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

#[test]
fn a_cluster_works_together() {
    if task::is_done() {
        return;
    }
    let out = task::job(this_test!(), &["--chief"]);
    let said = text(&out.stdout);
    assert!(out.status.success(), "{said}{}", text(&out.stderr));
    for task in ["chief", "worker 0"] {
        assert!(said.contains(&format!("[{task}] all have added\n")), "{said}");
    }
}

#[test]
fn servers_add_a_part_of_the_gradients_or_all() {
    let bench = ["--", PROGRAM, "bench", "layers", "--shrink", "20000", "--step-time", "5ms"];
    for only in [false, true] {
        let flag = if only { &["--servers-only"][..] } else { &[] };
        let job = [&["-np", "2", "--servers", "1"], flag, &bench, &["--steps", "2", "--json"]];
        let out = run(&job.concat());
        let said = text(&out.stdout);
        assert!(out.status.success(), "{said}{}", text(&out.stderr));
        // The ranks would have refused a server that split the sums in another way.
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
fn jobs_that_cannot_use_servers_are_refused() {
    let bench = ["--", PROGRAM, "bench", "allreduce", "--sizes", "1MB"];
    let out = run(&[&["-np", "2", "--servers", "1"][..], &bench].concat());
    let errors = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{errors}");
    assert!(errors.contains("`bench layers` has servers help"), "{errors}");
}

#[test]
fn a_mistake_on_the_command_line_is_answered_with_a_correction() {
    for (line, says) in [
        ("run -np 2 --wdir /tmp sh", "--wdir has no meaning here: change to that folder"),
        ("run -np 2 --hostfile none sh", "cannot read the host file none"),
        ("run --nonsense 2 sh", "unexpected argument '--nonsense'"),
        ("run -np 0 -- true", "-np must be at least 1"),
        ("run -n 2 -H a:1 -- true", "2 processes for 1 slot: add slots, such as -H a:2"),
        ("run -np 1 --servers 2 --server-hosts a -- true", "such as --server-hosts a:2"),
        (
            "run -np 1 -H far --rsh no-such-shell -- true",
            "\"no-such-shell\", the remote shell (--rsh)",
        ),
        ("bench allreduce -n 0", "-n must be at least 1"),
        (
            "bench allreduce --algorithm star",
            "unknown all-reduce algorithm \"star\": use one of ring",
        ),
        ("bench allreduce --sizes 4,3", "--sizes: 3 is not a multiple of 4 bytes"),
        ("bench allreduce --transport pigeon", "unknown transport \"pigeon\""),
        ("bench layers --step-time never", "\"never\" is no duration"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let out = ferroflow(&words).stdin(Stdio::null()).output().unwrap();
        let errors = text(&out.stderr);
        assert!(!out.status.success() && out.stdout.is_empty(), "{line}: {errors}");
        // The message appears once, and only this command prints it.
        assert_eq!(errors.matches(says).count(), 1, "{line}: {errors}");
        assert!(!errors.contains("first to fail"), "{line}: {errors}");
    }
}

#[test]
fn a_single_rank_can_be_measured() {
    let words = ["bench", "allreduce", "-n", "1", "--sizes", "4", "--seconds", "0.01"];
    let out = ferroflow(&words).output().unwrap();
    let said = text(&out.stdout);
    assert!(out.status.success(), "{said}{}", text(&out.stderr));
    assert!(said.starts_with("all-reduce (sum of float) of one rank alone\n"), "{said}");
}

#[test]
fn tensors_with_names_can_be_measured() {
    let words = ["bench", "allreduce", "--named", "--sizes", "4,64KiB", "--seconds", "0.01"];
    let out = ferroflow(&[&words[..], &["--json"]].concat()).output().unwrap();
    let said = text(&out.stdout);
    assert!(out.status.success(), "{said}{}", text(&out.stderr));
    let figures: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let bytes: Vec<_> = figures.iter().map(|f| f["bytes"].as_u64()).collect();
    assert_eq!(bytes, [Some(4), Some(65536)], "{said}");
    assert!(figures.iter().all(|f| f["n"] == 2 && f["us"].as_f64() > Some(0.0)), "{said}");
}

#[test]
fn ranks_get_their_numbers_and_their_output_is_labelled() {
    let script = "echo rank $FERROFLOW_RANK of $WORLD_SIZE; echo oh dear >&2";
    let out = run(&["-np", "2", "--", "sh", "-c", script]);
    let said = text(&out.stdout);
    assert!(out.status.success(), "{said}{}", text(&out.stderr));
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] rank 0 of 2", "[1] rank 1 of 2"]);
    let errors = text(&out.stderr);
    assert!(errors.contains("[0] oh dear\n") && errors.contains("[1] oh dear\n"), "{errors}");
    // As under mpirun: its flags, and no dashes before the program.
    let out = run(&["-np", "2", "-bind-to", "none", "--mca", "btl", "tcp", "sh", "-c", script]);
    assert_eq!(text(&out.stdout).lines().count(), 2, "{}", text(&out.stderr));
    let ignored = "ferroflow run: ignored: -bind-to, --mca btl\n";
    assert!(text(&out.stderr).contains(ignored), "{}", text(&out.stderr));
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

#[test]
fn an_elastic_job_follows_the_slots_that_a_script_finds() {
    let script = Discovery::new();
    script.find(1);
    let program = "trap 'echo leaves; exit 0' TERM; echo is up
        until [ -e \"$STOP_FILE\" ]; do sleep 0.1; done";
    let (mut job, lines, errors) = script.job(&["sh", "-c", program], &[]);
    errors.wait_for("starting 1 of 2 processes");
    lines.wait_for("[0] is up");
    // Two processes join at the same time, in either order.
    script.find(3);
    let mut both = [lines.wait_for("is up"), lines.wait_for("is up")];
    both.sort_unstable();
    assert_eq!(both, ["[1] is up", "[2] is up"]);
    // The youngest ranks leave, and the job continues.
    script.find(1);
    let mut both = [lines.wait_for("leaves"), lines.wait_for("leaves")];
    both.sort_unstable();
    assert_eq!(both, ["[1] leaves", "[2] leaves"]);
    script.find(2);
    lines.wait_for("[3] is up");
    script.stop();
    assert_eq!(job.end().code(), Some(0));
}
