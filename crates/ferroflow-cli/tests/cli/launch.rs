//! `ferroflow run`: signals that end a job, and the destination of its output.

use crate::common::{Lines, PROGRAM, Running, ferroflow, folder};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// The standard error of a process that has ended.
fn errors_of(child: &mut Child) -> String {
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    text
}

/// Whether the process runs and is not a zombie.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|s| !s.contains(") Z "))
}

#[test]
fn a_job_ends_when_the_reader_of_its_output_goes_away() {
    let mut command = ferroflow(&["run", "-np", "2", "--", "yes"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut job = Running(child);
    let mut line = String::new();
    BufReader::new(job.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.ends_with("] y\n"), "{line}");
    // 128 + SIGPIPE, as for a program that does not expect the signal.
    assert_eq!(job.end().code(), Some(141));
    let errors = errors_of(&mut job.0);
    assert_eq!(errors.matches("the reader of its output has gone away").count(), 1, "{errors}");
    assert!(!errors.contains("first to fail"), "{errors}");
}

#[test]
fn a_job_ends_when_the_reader_of_its_errors_goes_away() {
    let mut command = ferroflow(&["run", "-np", "2", "--", "sh", "-c", "yes >&2"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut job = Running(child);
    drop(job.0.stderr.take());
    assert_eq!(job.end().code(), Some(141));
}

#[test]
fn a_job_fails_if_its_output_cannot_be_written() {
    for program in ["echo", "yes"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = ferroflow(&["run", "-np", "1", "--", program, "hi"]);
        let child = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let mut job = Running(child);
        assert_eq!(job.end().code(), Some(1), "{program}");
        let errors = errors_of(&mut job.0);
        assert_eq!(errors.matches("its output cannot be written").count(), 1, "{errors}");
    }
}

#[test]
fn an_endless_line_is_passed_on_in_pieces() {
    let zeros = ["run", "-np", "1", "--", "head", "-c", "200000", "/dev/zero"];
    let out = ferroflow(&zeros).output().unwrap();
    assert!(out.status.success());
    assert_eq!(out.stdout.iter().filter(|&&byte| byte == 0).count(), 200_000);
    let pieces = out.stdout.split(|&byte| byte == b'\n').filter(|piece| !piece.is_empty());
    let pieces: Vec<&[u8]> = pieces.collect();
    assert_eq!(pieces.len(), 4);
    assert!(pieces.iter().all(|piece| piece.starts_with(b"[0] \0")));
}

#[test]
fn a_slow_reader_gets_all_output() {
    let mut command = ferroflow(&["run", "-np", "1", "--", "seq", "1", "15000"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut job = Running(child);
    // Longer than the launcher waits for the last output of silent processes.
    std::thread::sleep(std::time::Duration::from_millis(1000));
    let lines = BufReader::new(job.0.stdout.take().unwrap()).lines();
    assert_eq!(lines.map_while(Result::ok).last().as_deref(), Some("[0] 15000"));
    assert_eq!(job.end().code(), Some(0), "{}", errors_of(&mut job.0));
}

#[test]
fn a_signal_ends_all_ranks_and_the_message_names_it() {
    for (signal, code, says) in
        [("INT", 130, "Ctrl-C"), ("TERM", 143, "SIGTERM"), ("HUP", 129, "SIGHUP")]
    {
        // The parent of this test may ignore signals, as nohup does.
        let mut command = Command::new("env");
        command.arg("--default-signal=HUP").arg(PROGRAM);
        command.args(["run", "-np", "1", "--", "sh", "-c", "echo pid $$; exec sleep 1000"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut job = Running(child);
        let line = Lines::of(job.0.stdout.take().unwrap()).wait_for("[0] pid ");
        job.signal(signal);
        assert_eq!(job.end().code(), Some(code), "{signal}");
        let errors = errors_of(&mut job.0);
        assert!(errors.contains(&format!("the job was ended by {says}")), "{errors}");
        assert!(!is_alive(line.trim_start_matches("[0] pid ")), "{signal}: {line}");
    }
}

#[test]
fn ranks_end_when_the_launcher_is_killed() {
    for words in [&["-np", "2"][..], &["-np", "2", "--min-np", "1"]] {
        let mut command = ferroflow(&["run"]);
        command.args(words).args(["--", "sh", "-c", "sleep 1000 & echo pid $!; wait"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut job = Running(child);
        let lines = Lines::of(job.0.stdout.take().unwrap());
        let pids = [0, 1].map(|_| lines.wait_for("] pid ").split_off("[0] pid ".len()));
        job.signal("KILL");
        job.end();
        let until = std::time::Instant::now() + crate::common::FOREVER;
        while pids.iter().any(|pid| is_alive(pid)) {
            assert!(std::time::Instant::now() < until, "{words:?}: {pids:?} live on");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

#[test]
fn a_job_that_ignores_hangups_goes_on() {
    let dir = folder("nohup");
    let go_on = dir.join("go-on");
    let rank = "echo is up; until [ -e \"$GO_ON\" ]; do sleep 0.05; done; echo still here";
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh", PROGRAM]);
    command.args(["run", "-np", "1", "--", "sh", "-c", rank]).env("GO_ON", &go_on);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut job = Running(child);
    let lines = Lines::of(job.0.stdout.take().unwrap());
    lines.wait_for("[0] is up");
    job.signal("HUP");
    std::fs::write(&go_on, "").unwrap();
    lines.wait_for("[0] still here");
    assert_eq!(job.end().code(), Some(0));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn every_slot_gets_a_rank_by_default() {
    let job =
        ["run", "-H", "localhost:2,[::1]:1", "--", "sh", "-c", "echo $LOCAL_RANK of $WORLD_SIZE"];
    let out = ferroflow(&job).output().unwrap();
    let said = String::from_utf8(out.stdout).unwrap();
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] 0 of 3", "[1] 1 of 3", "[2] 2 of 3"]);
}

#[test]
fn a_job_waits_for_enough_slots_before_it_starts() {
    let dir = folder("too-few");
    let script = dir.join("hosts.sh").display().to_string();
    // Written by another process: a child of another test may inherit a file that this process has
    // open, and a file that is open for writing cannot be executed.
    let write = r#"printf '#!/bin/sh\necho localhost:1\n' > "$1" && chmod +x "$1""#;
    assert!(Command::new("sh").args(["-c", write, "sh", &script]).status().unwrap().success());
    let job = ["run", "-np", "2", "--host-discovery-script", &script, "--elastic-timeout", "0"];
    let out = ferroflow(&[&job[..], &["--", "echo", "started"]].concat()).output().unwrap();
    let errors = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(1), "{errors}");
    assert_eq!(out.stdout, b"", "nothing was started");
    assert!(errors.contains("1 of 2 slots; waiting up to 0 s (--elastic-timeout)"), "{errors}");
    assert!(errors.contains("1 of 2 slots, and no more within 0"), "{errors}");
    // With --min-np 1 one slot is enough, and the job starts at once.
    let job = [&job[..], &["--min-np", "1", "--", "echo", "started"]].concat();
    let out = ferroflow(&job).output().unwrap();
    let errors = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.stdout, b"[0] started\n", "{errors}");
    assert!(
        errors.contains("starting 1 of 2 processes") && !errors.contains("waiting"),
        "{errors}"
    );
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_job_token_reaches_other_hosts_through_standard_input() {
    let token = ["--", "sh", "-c", "echo a token of ${#FERROFLOW_TOKEN} letters"];
    let shell = ["--port", "9", "--rsh", "env FAR={host} sh -c"];
    let job = [&["run", "-H", "192.0.2.7:1"], &shell[..], &token].concat();
    let out = ferroflow(&job).output().unwrap();
    let errors = String::from_utf8(out.stderr).unwrap();
    let said = String::from_utf8(out.stdout).unwrap();
    assert_eq!(said, "[0] a token of 32 letters\n", "{errors}");
}

#[test]
fn variables_are_passed_on_to_other_hosts() {
    let hosts = ["run", "-H", "192.0.2.7:1", "--rsh", "env -i FAR={host} sh -c"];
    let passed = ["-x", "GIVEN=it's", "-x", "HERE", "-x", "RANK=7"];
    let program = ["--", "sh", "-c", "echo $RANK $GIVEN $HERE $NOT"];
    let mut command = ferroflow(&[&hosts[..], &["--port", "9"], &passed, &program].concat());
    let out = command.env("HERE", "as here").env("NOT", "passed on").output().unwrap();
    let errors = String::from_utf8(out.stderr).unwrap();
    assert_eq!(
        String::from_utf8(out.stdout).unwrap(),
        "[0] 0 it's as here
",
        "{errors}"
    );
}
