//! Hybrid jobs of `ferroflow run`: ranks and parameter servers are processes, which are killed,
//! added and removed. The ranks are this test program.

use crate::common::discovery::Discovery;
use crate::common::{FOREVER, Lines, Running, ferroflow, folder};
use ferroflow::hvd::Reduction;
use ferroflow::hybrid::{self, HybridSession};
use ferroflow::prelude::*;
use ferroflow_testing::{child, this_test};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Adds 1 to row 3 of a table and to a dense variable in each step, until the file `STOP_FILE`
/// exists.
fn rank() {
    let var = |name: &str| std::env::var(name).unwrap();
    let (stop, out) = (var("STOP_FILE"), var("OUT_DIR"));
    let job = hybrid::init().unwrap();
    let g = job.graph();
    let (table, dense, update) = job.scope(&g, || {
        let table = job.table(&g, "table", init::zeros([100, 2]));
        let dense = g.variable("dense", 0.0);
        let row = job.lookup(&table, &g.constant([3i64])).sum_all();
        let loss = (row + &dense) * -1.0;
        let optimizer = job.optimizer(Sgd::new(1.0)).mode(hybrid::PsMode::Sync);
        (table, dense, optimizer.minimize(&loss, &g.global_step()))
    });
    let whole = table.whole();
    let training = job.training(&g, &update).dir(out).save_steps(1).max_to_keep(3);
    let mut session = training.open().unwrap();
    let mut known = (0, 0);
    let mut recovered = 0;
    loop {
        session.train(()).unwrap();
        let now = (job.size(), job.ps().len());
        if now != known {
            known = now;
            let pid = std::process::id();
            println!("\nrank {} of {}, {} ps, process {pid}", job.rank(), now.0, now.1);
        }
        if session.recoveries().len() > recovered {
            recovered = session.recoveries().len();
            println!("\nrank {} of {}, {} ps, recovered {recovered}", job.rank(), now.0, now.1);
        }
        if is_over(&job, &stop) {
            break;
        }
    }
    let values = |session: &HybridSession| session.session()?.run((&whole, dense.scalar::<f32>()));
    let (table, dense) = values(&session).unwrap();
    let row = table.as_slice::<f32>().unwrap()[6];
    let (step, recoveries) = (session.global_step(), session.recoveries().len());
    println!("\nend: row {row} dense {dense} step {step}, {recoveries} recoveries");
    session.close().unwrap();
}

/// Whether the test has asked the ranks to stop. All ranks return the same answer.
fn is_over(job: &hybrid::Hybrid, stop: &str) -> bool {
    let own = Tensor::scalar(u8::from(Path::new(stop).exists()));
    // An error means a lost rank, which the next step handles.
    let any = job.world().all_reduce_value("over", own, Reduction::Max);
    any.and_then(|any| any.scalar_value::<u8>()).is_ok_and(|any| any == 1)
}

/// The number after a word of a line.
fn number(line: &str, word: &str) -> f32 {
    let (_, rest) = line.split_once(&format!("{word} ")).unwrap_or_else(|| panic!("{line}"));
    rest.split([' ', ',']).next().unwrap().parse().unwrap_or_else(|_| panic!("{line}"))
}

fn kill(pid: f32) {
    let sent = Command::new("kill").args(["-9", &(pid as u32).to_string()]).status().unwrap();
    assert!(sent.success());
}

/// The process whose command line has all of these words.
fn process_with(words: &[&str]) -> f32 {
    let until = Instant::now() + FOREVER;
    loop {
        for entry in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if words.iter().all(|word| line.contains(word)) {
                return entry.file_name().to_str().unwrap().parse().unwrap();
            }
        }
        assert!(Instant::now() < until, "no process has {words:?}");
    }
}

/// The child of a process whose command line has this word.
fn child_with(parent: u32, word: &str) -> f32 {
    let until = Instant::now() + FOREVER;
    loop {
        for entry in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
            let read = |file| std::fs::read(entry.path().join(file)).unwrap_or_default();
            let (line, stat) = (read("cmdline"), read("stat"));
            let (line, stat) = (String::from_utf8_lossy(&line), String::from_utf8_lossy(&stat));
            let after_name = stat.rsplit(") ").next().unwrap_or_default();
            if line.contains(word) && after_name.split(' ').nth(1) == Some(&parent.to_string()) {
                return entry.file_name().to_str().unwrap().parse().unwrap();
            }
        }
        assert!(Instant::now() < until, "process {parent} has no child with {word:?}");
    }
}

struct Job {
    running: Running,
    lines: Lines,
    errors: Lines,
    dir: std::path::PathBuf,
}

impl Job {
    fn start(flags: &[&str], program: &[String]) -> Job {
        let dir = folder("hybrid");
        let program: Vec<&str> = program.iter().map(String::as_str).collect();
        let mut command = ferroflow(&[&["run"], flags, &["--"], &program].concat());
        command.env(child::ROLE, "rank").env("STOP_FILE", dir.join("stop"));
        command.env("OUT_DIR", dir.join("out"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = Lines::of(child.stdout.take().unwrap());
        let errors = Lines::of(child.stderr.take().unwrap());
        Job { running: Running(child), lines, errors, dir }
    }

    /// Lets the ranks end. Returns the last line of one of them.
    fn end(mut self) -> String {
        std::fs::write(self.dir.join("stop"), "").unwrap();
        let line = self.lines.wait_for("end: ");
        assert_eq!(self.running.end().code(), Some(0));
        std::fs::remove_dir_all(&self.dir).unwrap();
        line
    }
}

#[test]
fn ranks_reduce_and_share_tables_in_one_job() {
    if child::role().as_deref() == Some("rank") {
        return rank();
    }
    let flags = ["--ps", "2", "-np", "2", "--servers", "1"];
    let job = Job::start(&flags, &child::words(this_test!()));
    job.lines.wait_for("of 2, 2 ps");
    let end = job.end();
    let step = number(&end, "step");
    assert!(step >= 1.0, "{end}");
    assert_eq!((number(&end, "row"), number(&end, "dense")), (step, step), "{end}");
}

#[test]
fn a_killed_rank_and_a_killed_parameter_server_are_survived() {
    if child::role().as_deref() == Some("rank") {
        return rank();
    }
    let flags = ["--ps", "2", "-np", "2", "--min-np", "1"];
    let job = Job::start(&flags, &child::words(this_test!()));
    let ready = job.lines.wait_for("[ps 1] ready grpc://");
    let address = ready.rsplit("grpc://").next().unwrap().to_string();
    let line = job.lines.wait_for("rank 1 of 2, 2 ps, process ");
    kill(number(&line, "process"));
    // The launcher starts another one, which joins.
    let line = job.lines.wait_for("rank 1 of 2, 2 ps, process ");
    kill(process_with(&["server", "--job ps --task 1", &address]));
    job.errors.wait_for("ps 1 has died; restarting it");
    job.lines.wait_for("[ps 1] ready");
    // All ranks continue from the last checkpoint. None of them has to be replaced.
    kill(number(&line, "process"));
    job.lines.wait_for("rank 1 of 2, 2 ps, process ");
    let end = job.end();
    let step = number(&end, "step");
    assert_eq!(number(&end, "dense"), step, "{end}");
    // Failed steps may have reached the table before they were repeated.
    let row = number(&end, "row");
    assert!((step..step + 5.0).contains(&row), "{end}");
}

#[test]
fn an_elastic_job_goes_on_when_its_reduce_server_is_killed() {
    if child::role().as_deref() == Some("rank") {
        return rank();
    }
    let flags = ["--ps", "1", "-np", "2", "--min-np", "1", "--servers", "1"];
    let job = Job::start(&flags, &child::words(this_test!()));
    job.lines.wait_for("of 2, 1 ps");
    kill(child_with(job.running.0.id(), "reduce-server"));
    job.errors.wait_for("server 0 has died; restarting it");
    let line = job.lines.wait_for("rank 0 of 2, 1 ps, recovered");
    assert!(number(&line, "recovered") >= 1.0, "{line}");
    let end = job.end();
    let step = number(&end, "step");
    assert_eq!(number(&end, "dense"), step, "{end}");
}

#[test]
fn tables_follow_the_number_of_parameter_servers() {
    if child::role().as_deref() == Some("rank") {
        return rank();
    }
    let script = Discovery::new();
    script.find_with(2, "ps 1");
    let program = child::words(this_test!());
    let path = script.script();
    let flags = ["--ps", "1", "-np", "2", "--min-np", "1", "--host-discovery-script", &path];
    let job = Job::start(&flags, &program);
    job.lines.wait_for("of 2, 1 ps");
    script.find_with(2, "ps 3");
    job.lines.wait_for("of 2, 3 ps");
    script.find_with(2, "ps 1");
    job.lines.wait_for("of 2, 1 ps");
    job.errors.wait_for("ps 2 has no tables any more; ending it");
    let end = job.end();
    let step = number(&end, "step");
    assert_eq!((number(&end, "row"), number(&end, "dense")), (step, step), "{end}");
}
