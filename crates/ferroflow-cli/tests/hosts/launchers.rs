//! Ranks that mpirun or ssh starts.

use crate::common::{Lines, PROGRAM, Running, ferroflow};
use crate::example::{self, Example};
use crate::sshd::Sshd;
use ferroflow_testing::needs;
use std::process::{Command, Stdio};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn ranks_that_mpirun_starts_find_each_other() {
    let bench = ["bench", "allreduce", "--sizes", "4,4KiB", "--seconds", "0.01", "--json"];
    let out = needs::mpirun().arg(PROGRAM).args(bench).output().unwrap();
    let said = text(&out.stdout);
    assert!(out.status.success(), "{said}{}", text(&out.stderr));
    let lines: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines.iter().all(|figures| figures["n"] == 2), "{said}");
}

/// A terminal, such as `ssh -tt` makes, echoes its input: the token must not appear.
pub fn a_job_token_passes_through_a_terminal_unseen() {
    let shell = ["--port", "9", "--rsh", "env FAR={host} script -qe -O /dev/null -c"];
    let token = ["--", "sh", "-c", "echo a token of ${#FERROFLOW_TOKEN} letters"];
    let job = [&["run", "-H", "192.0.2.7:1"], &shell[..], &token].concat();
    let out = ferroflow(&job).output().unwrap();
    assert_eq!(text(&out.stdout), "[0] a token of 32 letters\n", "{}", text(&out.stderr));
}

pub fn ssh_runs_the_example() {
    let (server, train) = (Sshd::start(), Example::new());
    let shell = server.remote_shell();
    // With a user name, the launcher reaches even this host by ssh.
    let user = text(&Command::new("id").arg("-un").output().unwrap().stdout);
    let hosts = format!("{}@localhost:2", user.trim());
    let job = ["run", "-H", &hosts, "--rsh", &shell, "--"];
    example::check(&ferroflow(&job).args(train.words()).output().unwrap());
}

pub fn torchrun_runs_the_example() {
    let train = Example::new();
    let mut command = Command::new("torchrun");
    command.args(["--standalone", "--nproc-per-node", "2", "--no-python"]);
    command.env_remove("FERROFLOW_ADDRESS").stdin(Stdio::null());
    example::check(&command.args(train.words()).output().unwrap());
}

pub fn ssh_starts_ranks_and_returns_their_exit_code() {
    let server = Sshd::start();
    let shell = server.remote_shell();
    let job = ["run", "-H", "far:2", "--rsh", &shell, "-x", "GIVEN=it's here", "--", "sh", "-c"];
    let script = "echo rank $RANK of $WORLD_SIZE, $GIVEN, a token of ${#FERROFLOW_TOKEN} letters";
    let out = ferroflow(&[&job[..], &[script]].concat()).output().unwrap();
    let said = text(&out.stdout);
    assert!(out.status.success(), "{said}{}", text(&out.stderr));
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    let rank = |n: usize| format!("[{n}] rank {n} of 2, it's here, a token of 32 letters");
    assert_eq!(lines, [rank(0), rank(1)]);
    let script = "test $RANK = 1 || exec sleep 1000; echo it went wrong >&2; exit 5";
    let out = ferroflow(&[&job[..], &[script]].concat()).output().unwrap();
    let errors = text(&out.stderr);
    assert_eq!(out.status.code(), Some(5), "{errors}");
    assert!(errors.contains("rank 1 (process ") && errors.contains(" on far)"), "{errors}");
}

pub fn ranks_that_ssh_started_end_with_the_launcher() {
    let server = Sshd::start();
    let shell = server.remote_shell();
    let job = ["run", "-H", "far:1", "--rsh", &shell, "--", "sh", "-c"];
    let mut command = ferroflow(&[&job[..], &["echo pid $$; exec sleep 1000"]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut launcher = Running(child);
    let line = Lines::of(launcher.0.stdout.take().unwrap()).wait_for("[0] pid ");
    let pid = line.trim_start_matches("[0] pid ").trim().to_string();
    launcher.signal("TERM");
    assert_eq!(launcher.end().code(), Some(143));
    let until = std::time::Instant::now() + crate::common::FOREVER;
    while std::fs::exists(format!("/proc/{pid}")).unwrap() {
        assert!(std::time::Instant::now() < until, "process {pid} lives on");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
