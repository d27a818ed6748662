//! `ferroflow plan` and `ferroflow bench`: results and mistakes of users.

use serde_json::Value;
use std::process::{Command, Output, Stdio};

const VGG16: [&str; 9] =
    ["plan", "--model-bytes", "553.36MB", "--link", "125MB/s", "-n", "4", "--step-time", "0.55s"];

fn ferroflow(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ferroflow"));
    command.args(words);
    command
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_plan_of_vgg16_has_the_expected_numbers() {
    let words = [&VGG16[..], &["--target-efficiency", "0.9", "--json"]].concat();
    let output = ferroflow(&words).output().unwrap();
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ring = &plan["strategies"][0];
    let near = |key: &str, wanted: f64| (ring[key].as_f64().unwrap() / wanted - 1.0).abs() < 1e-5;
    assert!(near("efficiency", 0.0764917) && near("step_seconds", 7.19032), "{ring}");
    assert!(near("link_for_target", 13_582.47e6), "{ring}");
}

#[test]
fn a_full_output_is_an_error_and_a_closed_one_is_not() {
    let full = std::fs::File::create("/dev/full").unwrap();
    let output = ferroflow(&VGG16).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("cannot write to the standard output"), "{}", errors(&output));
    let mut child =
        ferroflow(&VGG16).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(errors(&output), "");
}

#[test]
fn a_plan_measured_on_this_host_has_no_servers() {
    let words =
        ["plan", "--measure", "linear", "--model-bytes", "4KB", "--step-time", "1ms", "-n", "2"];
    let output = ferroflow(&[&words[..], &["--json"]].concat()).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(plan["link_bytes_per_second"].as_f64().unwrap() > 0.0);
    assert_eq!(plan["strategies"].as_array().unwrap().len(), 1);
    assert_eq!(plan["recommended"]["servers"], 0.0);
    assert!(errors(&output).contains("5 of 5"), "{}", errors(&output));
}

#[test]
fn mistakes_are_reported_before_anything_is_measured() {
    let cases: [(&[&str], &str); 7] = [
        (&["plan", "--measure", "linear", "-n", "0"], "at least one worker"),
        (&[&VGG16[..], &["--overlap", "-1"]].concat(), "from 0 to 1"),
        (&[&VGG16[..7], &["--step-time", "0s"]].concat(), "0.55s or 550ms"),
        (&["bench", "allreduce", "--seconds", "nan"], "--seconds must be a number above 0"),
        (&["bench", "allreduce", "--rounds", "0"], "1..=1000"),
        (&["bench", "layers", "--steps", "0"], "1.."),
        (&["bench", "allreduce", "--sizes", "3"], "not a multiple of 4 bytes"),
    ];
    for (words, expected) in cases {
        let output = ferroflow(words).output().unwrap();
        assert!(!output.status.success(), "{words:?}");
        assert!(errors(&output).contains(expected), "{words:?}: {}", errors(&output));
    }
}

#[test]
fn a_rank_of_an_elastic_job_is_never_measured_alone() {
    let words = ["bench", "allreduce", "--sizes", "4"];
    let output = ferroflow(&words).env("FERROFLOW_ELASTIC", "127.0.0.1:1").output().unwrap();
    assert!(!output.status.success());
    assert!(errors(&output).contains("this job is elastic"), "{}", errors(&output));
}
