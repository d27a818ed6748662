//! `cargo xtask fuzz`: runs the fuzz targets until each has used its processor time.
//!
//! A target runs in slices, and all targets take turns. The ledger in `fuzz/target/ledger/` records
//! the time and the executions of each, so that an interrupted run can continue.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::paths;
use crate::proof::{HOST, needs, nightly};
use crate::steps::{self, Failure, Result};

/// Run the fuzz targets, each until it has used some processor time.
///
/// Needs `cargo install cargo-fuzz`. See fuzz/README.md.
#[derive(clap::Args)]
pub struct Args {
    /// Processor time of each target, in minutes
    #[arg(long, value_name = "M", default_value_t = 1.0)]
    minutes: f64,

    /// This target only; may be repeated
    #[arg(long, value_name = "TARGET")]
    only: Vec<String>,

    /// Go on where the last run stopped, instead of starting anew
    #[arg(long)]
    resume: bool,

    /// Run the targets as they were built last
    #[arg(long)]
    built: bool,
}

/// Most seconds of a slice, by the clock.
const SLICE: f64 = 120.0;

pub fn run(args: &Args) -> Result {
    let mut targets = targets()?;
    if let Some(unknown) = args.only.iter().find(|name| !targets.contains(name)) {
        return Err(Failure(format!("no target '{unknown}'; there are {}", targets.join(", "))));
    }
    targets.retain(|name| args.only.is_empty() || args.only.contains(name));
    if !args.built {
        needs(&["+nightly", "fuzz", "--version"], "cargo install cargo-fuzz")?;
        steps::run(&mut nightly(&["fuzz", "build"]))?;
    }
    let mut ledgers = targets
        .iter()
        .map(|target| if args.resume { Ledger::read(target) } else { Ok(Ledger::new(target)) })
        .collect::<Result<Vec<Ledger>>>()?;
    let goal = args.minutes * 60.0;
    while ledgers.iter().any(|ledger| ledger.is_running(goal)) {
        for ledger in ledgers.iter_mut().filter(|ledger| ledger.is_running(goal)) {
            ledger.slice((goal - ledger.cpu).clamp(5.0, SLICE))?;
            println!("{}", ledger.line());
        }
    }
    println!("\n{HEAD}");
    ledgers.iter().for_each(|ledger| println!("{}", ledger.line()));
    let findings: Vec<&str> = ledgers.iter().filter_map(|l| l.finding.as_deref()).collect();
    if !findings.is_empty() {
        let text = format!("{} findings:\n{}", findings.len(), findings.join("\n"));
        return Err(Failure(text));
    }
    println!("\n{} targets, no finding", ledgers.len());
    Ok(())
}

const HEAD: &str = "| target | processor minutes | executions | inputs kept |\n|---|---|---|---|";

/// The time, the executions and the finding of a target.
struct Ledger {
    target: String,
    /// Seconds of processor time.
    cpu: f64,
    executions: u64,
    /// The first input that breaks the target, and the failure.
    finding: Option<String>,
}

impl Ledger {
    fn new(target: &str) -> Ledger {
        Ledger { target: target.into(), cpu: 0.0, executions: 0, finding: None }
    }

    fn read(target: &str) -> Result<Ledger> {
        let path = ledger_path(target);
        let Ok(text) = fs::read_to_string(&path) else { return Ok(Ledger::new(target)) };
        let value: Value = serde_json::from_str(&text)
            .map_err(|e| Failure(format!("cannot read {}: {e}", paths::shown(&path))))?;
        Ok(Ledger {
            cpu: value["cpu"].as_f64().unwrap_or_default(),
            executions: value["executions"].as_u64().unwrap_or_default(),
            ..Ledger::new(target)
        })
    }

    fn write(&self) -> Result {
        let value = json!({ "cpu": self.cpu, "executions": self.executions });
        let path = ledger_path(&self.target);
        made(path.parent().expect("a ledger is in a folder"))?;
        fs::write(&path, value.to_string()).map_err(|e| failed(&path, &e))
    }

    fn is_running(&self, goal: f64) -> bool {
        self.cpu < goal && self.finding.is_none()
    }

    /// Runs the target for some seconds.
    fn slice(&mut self, seconds: f64) -> Result {
        let seeds = made(&work_folder().join("seeds").join(&self.target))?;
        let artifacts = made(&fuzz_folder().join("artifacts").join(&self.target))?;
        let mut command = self.program();
        command.env("FUZZ_SEEDS", &seeds);
        command.arg(corpus(&self.target)?).arg(&seeds);
        command.arg(format!("-artifact_prefix={}/", artifacts.display()));
        command.arg(format!("-max_total_time={}", seconds.ceil()));
        // A process that is stopped for a while, or gets no processor, is not a finding.
        command.args(["-timeout=900", "-rss_limit_mb=4096", "-print_final_stats=1"]);
        // The recorded SavedModels are larger than the inputs of other targets.
        let length = if self.target == "saved_model" { 32 << 10 } else { 4 << 10 };
        command.arg(format!("-max_len={length}"));
        let (log, is_fine, cpu) = self.run(&mut command)?;
        self.cpu += cpu;
        self.executions += executions(&log);
        if !is_fine {
            self.judge(&log)?;
        }
        self.write()
    }

    /// Runs the input that broke the target once more. If it does not break it then, it was not the
    /// cause: a process that was stopped for a while can miss the deadline of a connection.
    fn judge(&mut self, log: &str) -> Result {
        let Some(input) = artifact(log) else {
            self.finding = Some(format!("{} ended without an input:\n{}", self.target, end(log)));
            return Ok(());
        };
        let mut command = self.program();
        let (log, is_fine, _) = self.run(command.arg(input).arg("-rss_limit_mb=4096"))?;
        match is_fine {
            true => println!("{}: {input} broke it once, and does not again", self.target),
            false => self.finding = Some(format!("{}: {input}\n{}", self.target, end(&log))),
        }
        Ok(())
    }

    fn program(&self) -> Command {
        let folder = fuzz_folder().join("target").join(HOST).join("release");
        let mut command = Command::new(folder.join(&self.target));
        command.env("ASAN_OPTIONS", "detect_odr_violation=0");
        command
    }

    /// Runs the fuzzer. Returns the output, whether it succeeded, and the processor time in
    /// seconds.
    fn run(&self, command: &mut Command) -> Result<(String, bool, f64)> {
        let before = children_cpu();
        let output = command.stdin(Stdio::null()).output();
        let output = output
            .map_err(|e| Failure(format!("cannot start {}: {e}", steps::text_of(command))))?;
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        let path = made(&work_folder().join("logs"))?.join(&self.target);
        fs::write(&path, &log).map_err(|e| failed(&path, &e))?;
        Ok((log, output.status.success(), children_cpu() - before))
    }

    fn line(&self) -> String {
        let kept = corpus(&self.target).and_then(|folder| {
            let entries = fs::read_dir(&folder).map_err(|e| failed(&folder, &e))?;
            Ok(entries.count())
        });
        let Ledger { target, cpu, executions, .. } = self;
        let kept = kept.unwrap_or_default();
        format!("| `{target}` | {:.1} | {executions} | {kept} |", cpu / 60.0)
    }
}

fn fuzz_folder() -> PathBuf {
    paths::root().join("fuzz")
}

/// The folder of this command's own files.
fn work_folder() -> PathBuf {
    fuzz_folder().join("target/xtask")
}

fn ledger_path(target: &str) -> PathBuf {
    work_folder().join("ledger").join(format!("{target}.json"))
}

fn corpus(target: &str) -> Result<PathBuf> {
    made(&fuzz_folder().join("corpus").join(target))
}

fn made(folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder).map_err(|e| failed(folder, &e))?;
    Ok(folder.to_path_buf())
}

fn failed(path: &Path, e: &std::io::Error) -> Failure {
    Failure(format!("cannot use {}: {e}", paths::shown(path)))
}

/// Seconds of processor time of the children that have ended.
fn children_cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may hold spaces.
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let field = |n: usize| after_name.split_whitespace().nth(n)?.parse::<f64>().ok();
    // Fields 16 and 17 of proc(5): user and system time of children, in hundredths of a second.
    (field(13).unwrap_or_default() + field(14).unwrap_or_default()) / 100.0
}

fn executions(log: &str) -> u64 {
    let line = log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or_default()
}

/// The file with the input that broke the target.
fn artifact(log: &str) -> Option<&str> {
    log.lines().find_map(|line| line.split_once("Test unit written to ").map(|(_, path)| path))
}

/// The last lines of a log.
fn end(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

/// The targets: the files of `fuzz/fuzz_targets/`.
fn targets() -> Result<Vec<String>> {
    let folder = fuzz_folder().join("fuzz_targets");
    let entries = fs::read_dir(&folder).map_err(|e| failed(&folder, &e))?;
    let name = |entry: std::io::Result<fs::DirEntry>| {
        Some(entry.ok()?.path().file_stem()?.to_str()?.to_string())
    };
    let mut names: Vec<String> = entries.filter_map(name).collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_of_the_folder_is_a_binary_of_the_package() {
        let manifest = fs::read_to_string(paths::root().join("fuzz/Cargo.toml")).unwrap();
        let targets = targets().unwrap();
        assert!(targets.len() > 10, "{targets:?}");
        for target in targets {
            assert!(manifest.contains(&format!("name = \"{target}\"")), "{target}");
        }
    }

    #[test]
    fn a_log_tells_the_executions_and_the_input_that_broke_the_target() {
        let log = "#12 DONE\nartifact_prefix='a/'; Test unit written to a/crash-1\nBase64: AA==\n\
                   stat::number_of_executed_units: 4711\n";
        assert_eq!(executions(log), 4711);
        assert_eq!(artifact(log), Some("a/crash-1"));
        assert_eq!((executions("killed"), artifact("killed")), (0, None));
    }

    #[test]
    fn the_processor_time_of_a_child_is_counted() {
        let before = children_cpu();
        let busy = ["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"];
        assert!(Command::new("sh").args(busy).status().unwrap().success());
        assert!(children_cpu() > before);
    }
}
