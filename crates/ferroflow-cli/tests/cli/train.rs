//! `ferroflow train` as a user runs it: real processes, stopped, killed and started again.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Far longer than any job here takes.
const DEADLINE: Duration = Duration::from_secs(240);

/// A job and its output, line by line. Dropping it kills the job.
struct Job {
    child: Child,
    lines: Receiver<String>,
    began: Instant,
    out: PathBuf,
}

impl Job {
    fn start(out: &Path, arguments: &[&str]) -> Job {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ferroflow"))
            .arg("train")
            .args(arguments)
            .args(["--json", "--out"])
            .arg(out)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (tell, lines) = channel();
        let output = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Job { child, lines, began: Instant::now(), out: out.to_path_buf() }
    }

    /// The next line, or none when the job has closed its output.
    fn line(&mut self) -> Option<Value> {
        let left = DEADLINE.saturating_sub(self.began.elapsed());
        match self.lines.recv_timeout(left) {
            Ok(line) => Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"))),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
            Err(e) => panic!("{e}: the job hangs; its files are in {}", self.out.display()),
        }
    }

    /// Reads lines until a worker has reached a global step.
    fn until(&mut self, worker: u64, step: i64) {
        while let Some(line) = self.line() {
            let is_there = line["worker"].as_u64() == Some(worker)
                && line["global_step"].as_i64().is_some_and(|s| s >= step);
            if is_there {
                return;
            }
        }
        panic!("the job ended before step {step}: {}", self.errors());
    }

    fn errors(&mut self) -> String {
        let mut text = String::new();
        let _ = self.child.kill();
        if let Some(mut errors) = self.child.stderr.take() {
            let _ = errors.read_to_string(&mut text);
        }
        text
    }

    /// The remaining lines, the exit status and the errors.
    fn end(mut self) -> (Vec<Value>, ExitStatus, String) {
        let mut lines = Vec::new();
        while let Some(line) = self.line() {
            lines.push(line);
        }
        let status = self.child.wait().unwrap();
        let errors = self.errors();
        (lines, status, errors)
    }

    /// The summary that the job prints at its end.
    fn summary(self) -> Value {
        let (lines, status, errors) = self.end();
        assert!(status.success(), "{errors}");
        let done = lines.into_iter().find(|line| line["done"].as_bool() == Some(true));
        done.unwrap_or_else(|| panic!("no summary: {errors}"))
    }

    /// The process of the job whose command line has all these words.
    fn process(&self, words: &[&str]) -> u32 {
        let leader = self.child.id().to_string();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let read = |name: &str| std::fs::read_to_string(entry.path().join(name));
            let (Ok(stat), Ok(line)) = (read("stat"), read("cmdline")) else { continue };
            let after_name = stat.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
            let parent = after_name.split(' ').nth(1).unwrap_or_default();
            let arguments: Vec<&str> = line.split('\0').collect();
            if parent == leader && arguments.windows(words.len()).any(|w| w == words) {
                return entry.file_name().to_string_lossy().parse().unwrap();
            }
        }
        panic!("no process {words:?}");
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kill(signal: &str, process: u32) {
    let killed = Command::new("kill").args([signal, &process.to_string()]).status().unwrap();
    assert!(killed.success());
}

fn temporary(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("ferroflow-cli-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

#[test]
fn a_stopped_job_continues_from_its_checkpoint() {
    let dir = temporary("stopped");
    let arguments = ["linear", "--steps", "100000000", "--workers", "2"];
    let mut job = Job::start(&dir, &arguments);
    job.until(0, 20);
    // Twice, as `timeout` does: to the process and to its group.
    kill("-TERM", job.child.id());
    kill("-TERM", job.child.id());
    let stopped = job.summary();
    assert_eq!(stopped["interrupted"].as_bool(), Some(true));
    let step = stopped["global_step"].as_i64().unwrap();
    let checkpoint = stopped["checkpoint"].as_str().unwrap();
    assert!(step >= 20 && Path::new(&format!("{checkpoint}.index")).exists(), "{stopped}");
    let steps = (step + 100).to_string();
    let (lines, status, errors) = Job::start(&dir, &["linear", "--steps", &steps]).end();
    assert!(status.success(), "{errors}");
    let done = lines.iter().find(|l| l["done"].as_bool() == Some(true)).unwrap();
    assert!(done["resumed_from"].as_i64().unwrap() >= step - 1, "{done}");
    assert!(done["global_step"].as_i64().unwrap() >= step + 100, "{done}");
    let compared = lines.iter().find(|l| l["compare"].is_object());
    assert!(compared.is_some_and(|l| l["compare"]["examples"].as_u64() > Some(0)), "{lines:?}");
    assert!(dir.join("loss.svg").exists());
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_closed_output_does_not_end_training() {
    for how in [&["--local"][..], &["--workers", "2"]] {
        let dir = temporary("closed");
        let mut command = Command::new(env!("CARGO_BIN_EXE_ferroflow"));
        command.args(["train", "linear", "--steps", "300", "--out"]).arg(&dir).args(how);
        let mut job = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(job.stdout.take());
        let ended = job.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && !errors.contains("panicked"), "{how:?}: {errors}");
        assert!(dir.join("model.ckpt-300.index").exists());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn a_gpu_trains_in_one_process_and_its_checkpoint_continues_on_the_cpu() {
    let dir = temporary("gpu");
    let common = ["mlp", "--batch", "8", "--seed", "3"];
    let on_gpu = ["--device", "gpu", "--simulate-gpu", "--steps", "4"];
    let done = Job::start(&dir, &[&common[..], &on_gpu].concat()).summary();
    assert_eq!(done["global_step"].as_i64(), Some(4), "{done}");
    let done = Job::start(&dir, &[&common[..], &["--local", "--steps", "6"]].concat()).summary();
    assert_eq!(done["resumed_from"].as_i64(), Some(4), "{done}");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_gpu_trains_with_mixed_precision() {
    for precision in ["f16", "bf16"] {
        let dir = temporary(precision);
        let on_gpu = ["mlp", "--batch", "8", "--steps", "4", "--device", "gpu", "--simulate-gpu"];
        let arguments = [&on_gpu[..], &["--mixed-precision", precision]].concat();
        let done = Job::start(&dir, &arguments).summary();
        assert_eq!(done["global_step"].as_i64(), Some(4), "{done}");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn a_job_can_be_stopped_before_its_first_step() {
    let dir = temporary("stopped-early");
    let job = Job::start(&dir, &["linear", "--steps", "100000000", "--workers", "2"]);
    // It handles signals before it starts the guard of its processes, and starts them after that.
    while std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", job.child.id()))
        .is_ok_and(|children| children.is_empty())
    {
        assert!(job.began.elapsed() < DEADLINE);
    }
    kill("-TERM", job.child.id());
    let (lines, status, errors) = job.end();
    assert!(status.success() || errors.contains("interrupted"), "{status} {errors}");
    assert!(lines.iter().all(|l| !l["note"].is_string()), "{lines:?}");
    let _ = std::fs::remove_dir_all(&dir);
}

/// Kills a task; the job restarts it and completes.
fn survives(name: &str, how: &str, victim: &[&str]) {
    let dir = temporary(name);
    let arguments = ["cnn", "--steps", "300", "--batch", "16", "--workers", "2", how];
    let mut job = Job::start(&dir, &arguments);
    job.until(0, 30);
    kill("-KILL", job.process(victim));
    let (lines, status, errors) = job.end();
    assert!(status.success(), "{errors}");
    let note = lines.iter().find_map(|l| l["note"].as_str()).unwrap_or_default();
    assert!(note.contains("restarting it"), "{lines:?}");
    let done = lines.iter().find(|l| l["done"].as_bool() == Some(true)).unwrap();
    assert!(done["global_step"].as_i64().unwrap() >= 300, "{done}");
    assert!(done["test_accuracy"].as_f64().unwrap() > 0.6, "{done}");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn synchronous_training_survives_the_kill_of_a_worker() {
    survives("sync-worker", "--sync", &["--task", "1"]);
}

#[test]
fn synchronous_training_survives_the_kill_of_a_parameter_server() {
    survives("sync-ps", "--sync", &["--job", "ps", "--task", "0"]);
}

#[test]
fn asynchronous_training_survives_the_kill_of_a_worker() {
    survives("async-worker", "--async", &["--task", "1"]);
}

#[test]
fn asynchronous_training_survives_the_kill_of_a_parameter_server() {
    survives("async-ps", "--async", &["--job", "ps", "--task", "0"]);
}

#[test]
fn one_worker_learns_digits_synchronously_and_asynchronously() {
    for how in ["--sync", "--async"] {
        let dir = temporary(&format!("one{how}"));
        let arguments = ["cnn", "--steps", "100", "--batch", "16", "--workers", "1", how];
        let done = Job::start(&dir, &arguments).summary();
        assert!(done["test_accuracy"].as_f64().unwrap() > 0.6, "{done}");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn mistakes_are_answered_with_a_hint() {
    let dir = temporary("mistakes");
    let cases: [(&[&str], &str); 9] = [
        (&["cnn", "--data", "/nowhere"], "no such directory"),
        (&["linear", "--data", "/tmp"], "--data is for mlp and cnn"),
        (&["mlp", "--steps", "0"], "at least 1"),
        (&["mlp", "--learning-rate", "0"], "above 0"),
        (&["mlp", "--learning-rate", "-1"], "above 0"),
        (&["mlp", "--steps", "-1"], "at least 1"),
        (&["mlp", "--workers", "0"], "--local"),
        (&["mpl"], "mlp"),
        (&["--local", "--async"], "cannot be used with"),
    ];
    for (arguments, expected) in cases {
        let (_, status, errors) = Job::start(&dir, arguments).end();
        assert!(!status.success() && errors.contains(expected), "{arguments:?}: {errors}");
    }
}

#[test]
fn ways_to_train_are_compared_on_the_same_examples() {
    let out = crate::common::folder("compare");
    let words = ["train", "linear", "--compare", "--steps", "30", "--json", "--out"];
    let ended = crate::common::ferroflow(&words).arg(&out).output().unwrap();
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{errors}");
    let said = String::from_utf8(ended.stdout).unwrap();
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ways: Vec<&str> = lines.iter().map(|line| line["way"].as_str().unwrap()).collect();
    assert_eq!(
        ways,
        [
            "one worker",
            "between-graph, sync",
            "between-graph, async",
            "in-graph, sync",
            "in-graph, async"
        ]
    );
    for line in &lines {
        // Two workers of 30 steps with ten examples each.
        assert_eq!(line["examples"], 600.0, "{line}");
        assert!(line["seconds"].as_f64().unwrap() > 0.0 && line["score"].is_number(), "{line}");
    }
    assert!(out.join("compare.svg").exists());
    std::fs::remove_dir_all(out).unwrap();
}
