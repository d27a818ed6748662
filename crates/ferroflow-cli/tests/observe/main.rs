//! Metrics and the dashboard as others read them: Prometheus' own parser, and a browser. A machine
//! without them skips the tests and says why; `cargo xtask dashboard` installs them.
#![allow(clippy::unwrap_used)]

mod browser;
#[path = "../common/mod.rs"]
mod common;
mod prometheus;

use ferroflow_testing::needs::Need;
use ferroflow_testing::{trial, trials};
use std::path::PathBuf;
use std::process::Command;

/// Chromium, Node.js and playwright-core.
const BROWSER: Need = Need { missing: browser::missing };
/// Python with prometheus_client.
const PROMETHEUS: Need = Need { missing: prometheus::missing };

fn main() {
    trials::run(&[
        trial!(prometheus::its_own_parser_reads_the_metrics_of_a_job, PROMETHEUS),
        trial!(browser::the_page_shows_a_training_job, BROWSER),
        trial!(browser::names_from_outside_are_text, BROWSER),
    ]);
}

/// Where `cargo xtask dashboard` installs what these tests need.
fn installed() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/dashboard")
}

/// Why a command does not work.
fn failure(what: &str, command: &mut Command) -> Option<String> {
    match command.output() {
        Ok(done) if done.status.success() => None,
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stderr);
            Some(format!("{what}: {}", said.lines().last().unwrap_or("failed")))
        }
        Err(e) => Some(format!("{what}: {e}")),
    }
}
