//! Runs the examples as programs. An example checks its own results and fails by its exit status.
//! Cargo builds the examples along with the tests of this crate.
#![allow(clippy::unwrap_used)]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The example's program, which lies beside the folder of this test.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap().join("examples");
    let program = folder.join(name);
    assert!(
        program.exists(),
        "{} is missing: build it with `cargo build -p ferroflow --examples`",
        program.display()
    );
    program
}

/// Runs an example to its end. Returns its output.
fn run(name: &str, arguments: &[&str]) -> String {
    // The environment of a launcher would make the example one rank of its job.
    let output = Command::new(program(name)).args(arguments).env_remove("TF_CONFIG").output();
    let Output { status, stdout, stderr } = output.unwrap();
    let text = String::from_utf8_lossy(&stdout).into_owned();
    let errors = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{name} ended with {status}\n{text}\n{errors}");
    text
}

macro_rules! examples {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            run(stringify!($name), &[]);
        }
    )*};
}

examples! {
    dataset estimator estimator_cluster first_graph hvd_mlp linear mnist_ps model_parallel recommender supervisor
    sync_replicas while_loop
}

#[test]
fn in_graph_towers() {
    let text = run("in_graph_towers", &[]);
    assert!(text.contains("CPU:0: ") && text.contains("CPU:1: "), "{text}");
}

#[test]
fn elastic_kills() {
    let text = run("elastic_kills", &["6", "7"]);
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words[..2], ["6", "kills,"], "{text}");
    assert!(words[2].parse::<u64>().unwrap() > 3 && words[3] == "epochs,", "{text}");
}

/// A process, which is killed when this is dropped.
struct Task(Child);

impl Task {
    fn start(name: &str, arguments: &[String]) -> Task {
        Task::with_config(name, arguments, None)
    }

    fn with_config(name: &str, arguments: &[String], tf_config: Option<&str>) -> Task {
        let mut command = Command::new(program(name));
        command.args(arguments).env_remove("TF_CONFIG").stdout(Stdio::piped());
        command.envs(tf_config.map(|config| ("TF_CONFIG", config)));
        Task(command.spawn().unwrap())
    }

    /// Waits for its end. Returns its output.
    fn end(mut self) -> String {
        let mut text = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let status = self.0.wait().unwrap();
        assert!(status.success(), "{status}\n{text}");
        text
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The number after `name=` in a line.
fn number(line: &str, name: &str) -> f64 {
    let (_, rest) = line.split_once(&format!("{name}=")).unwrap_or_else(|| panic!("{line}"));
    rest.split(',').next().unwrap().trim().parse().unwrap_or_else(|_| panic!("{line}"))
}

#[test]
fn linear_cluster() {
    let dir = std::env::temp_dir().join(format!("ferroflow-linear-cluster-{}", std::process::id()));
    let spec = ferroflow::cluster::loopback_spec(&[("ps", 1), ("worker", 2)]).unwrap();
    let hosts = |job: &str| {
        let of = spec.tasks().filter(|task| task.0 == job).map(|task| task.2);
        format!("--{job}_hosts={}", of.collect::<Vec<_>>().join(","))
    };
    let start = |job: &str, task: u32| {
        let words = [hosts("ps"), hosts("worker"), format!("--job_name={job}")];
        let more = [format!("--task_index={task}"), "--train_steps=400".into()];
        let dir = ["--log_dir".to_string(), dir.display().to_string()];
        Task::start("linear_cluster", &[&words[..], &more, &dir].concat())
    };
    // Workers before the parameter server, the chief last: the order does not matter.
    let other = start("worker", 1);
    let _ps = start("ps", 0);
    let chief = start("worker", 0);
    let texts = [chief.end(), other.end()];
    for (task, text) in texts.iter().enumerate() {
        assert!(
            text.contains(&format!("Worker {task}: Session initialization complete.")),
            "{text}"
        );
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("local_step=")).collect();
        assert!(lines.len() >= 4, "{text}");
        for line in &lines {
            assert!(number(line, "local_step") >= 1.0 && number(line, "loss") >= 0.0, "{line}");
        }
        let last = lines.last().unwrap();
        assert!(number(last, "global_step") >= 400.0, "{text}");
        let (w, b) = (number(last, "W"), number(last, "b"));
        assert!((w - 2.0).abs() < 0.5 && (b - 10.0).abs() < 0.5, "{text}");
        assert!(text.contains("Optimization Finished: W="), "{text}");
    }
    assert!(dir.join("checkpoint").exists());
    std::fs::remove_dir_all(&dir).unwrap();
}

/// The program of the test `estimator_cluster`, as the tasks of a cluster. TF_CONFIG names the
/// folder, and the worker's sessions run on the master of the chief.
#[test]
fn estimator_tasks_are_processes() {
    let dir = std::env::temp_dir().join(format!("ferroflow-estimator-{}", std::process::id()));
    let spec = ferroflow::cluster::loopback_spec(&[("ps", 2), ("chief", 1), ("worker", 1)]);
    let spec = spec.unwrap();
    let list = |job: &str| {
        let of = spec.tasks().filter(|task| task.0 == job).map(|task| format!("{:?}", task.2));
        format!("{job:?}:[{}]", of.collect::<Vec<_>>().join(","))
    };
    let cluster = ["ps", "chief", "worker"].map(list).join(",");
    let start = |job: &str, task: u32, more: &str| {
        let task = format!(r#""task":{{"type":{job:?},"index":{task}}}"#);
        let dir = format!(r#""model_dir":{:?},"rpc_layer":"grpc""#, dir.display().to_string());
        let config = format!(r#"{{"cluster":{{{cluster}}},{task},{dir}{more}}}"#);
        Task::with_config("estimator_cluster", &[], Some(&config))
    };
    let master = format!(r#","session_master":{:?}"#, spec.address("chief", 0).unwrap());
    let _ps = [start("ps", 0, ""), start("ps", 1, "")];
    let tasks = [start("worker", 0, &master), start("evaluator", 0, ""), start("chief", 0, "")];
    let [worker, evaluator, chief] = tasks.map(Task::end);
    assert!(evaluator.contains("after step 6"), "{evaluator}");
    assert_eq!((worker.as_str(), chief.as_str()), ("", ""));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn weak_scaling() {
    let text = run("weak_scaling", &["mlp", "0.2"]);
    assert!(text.contains('{'), "{text}");
}

#[test]
fn tf_interop() {
    let dir = std::env::temp_dir().join(format!("ferroflow-examples-{}", std::process::id()));
    run("tf_interop", &[dir.to_str().unwrap()]);
    for file in ["model.ckpt-200.index", "model.ckpt-200.meta", "saved_model/saved_model.pb"] {
        assert!(dir.join(file).exists(), "{file}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

/// The examples that measure start a server: they need the command's program.
#[test]
fn every_example_is_run_or_measures() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let own = include_str!("examples.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned();
        let is_run = own.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == name);
        assert!(is_run || name.starts_with("bench_"), "no test runs the example {name}");
    }
}
