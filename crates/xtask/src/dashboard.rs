//! `cargo xtask dashboard`: the tests of the dashboard in a browser and of the metrics with
//! Prometheus' own parser, with what they need.

use std::path::PathBuf;
use std::process::Command;

use crate::paths;
use crate::steps::{self, Failure, Result};

/// Test the dashboard in Chromium, and the metrics with Prometheus' Python client.
#[derive(clap::Args)]
pub struct Args {
    /// Folder for screenshots of the dashboard
    #[arg(long, value_name = "DIR")]
    screenshots: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result {
    let folder = paths::root().join("target/dashboard");
    std::fs::create_dir_all(&folder)
        .map_err(|e| Failure(format!("cannot make {}: {e}", paths::shown(&folder))))?;
    if Command::new("chromium").arg("--version").output().is_err() {
        return Err(Failure(
            "the tests need Chromium and Node.js: apt-get install chromium nodejs npm".into(),
        ));
    }
    if !folder.join("node_modules/playwright-core").exists() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&folder);
        steps::run(npm.arg("playwright-core"))?;
    }
    let python = folder.join("venv/bin/python");
    if !python.exists() {
        steps::run(Command::new("python3").args(["-m", "venv"]).arg(folder.join("venv")))?;
        steps::run(Command::new(&python).args([
            "-m",
            "pip",
            "-q",
            "install",
            "prometheus_client",
        ]))?;
    }
    let mut test = steps::cargo(&["test", "-p", "ferroflow-cli", "--test", "observe"]);
    if let Some(screenshots) = &args.screenshots {
        let folder = std::fs::create_dir_all(screenshots)
            .and_then(|()| screenshots.canonicalize())
            .map_err(|e| Failure(format!("cannot make {}: {e}", screenshots.display())))?;
        test.env("DASHBOARD_SCREENSHOTS", folder);
    }
    steps::run(&mut test)
}
