//! Runs the examples as programs. An example checks its own results and fails by its exit status.
//! Cargo builds the examples along with the tests of this crate.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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

/// Runs an example to its end; returns what it printed.
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
    dataset estimator estimator_cluster first_graph hvd_mlp linear mnist_ps model_parallel supervisor
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
