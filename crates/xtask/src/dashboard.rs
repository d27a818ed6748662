//! `cargo xtask dashboard`: the tests of the dashboard in a browser, and of the metrics with
//! Prometheus' own parser. Installs the programs that they need.

use std::path::PathBuf;
use std::process::Command;

use crate::background::Background;
use crate::paths;
use crate::steps::{self, Failure, Result};

/// Test the dashboard in Chromium, and the metrics with Prometheus' Python client.
#[derive(clap::Args)]
pub struct Args {
    /// Folder for screenshots of the dashboard
    #[arg(long, value_name = "DIR")]
    screenshots: Option<PathBuf>,
}

/// The packages that drive the browser and parse the metrics.
const PLAYWRIGHT: &str = "playwright-core@1.65.1";
const PROMETHEUS: &str = "prometheus_client==0.26.0";

pub fn run(args: &Args) -> Result {
    if Command::new("chromium").arg("--version").output().is_err() {
        return Err(Failure(
            "the tests need Chromium and Node.js: apt-get install chromium nodejs npm".into(),
        ));
    }
    if let Some(mut install) = install()? {
        install.wait()?;
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

/// Starts to download what the tests need besides Chromium; `None` if it is installed.
pub fn install() -> Result<Option<Background>> {
    let folder = paths::root().join("target/dashboard");
    let stamp = folder.join("installed.txt");
    let wanted = format!("{PLAYWRIGHT} {PROMETHEUS}");
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(None);
    }
    let script = "set -e; mkdir -p \"$1\"\n\
                  npm install --no-audit --no-fund --prefix \"$1\" \"$2\"\n\
                  python3 -m venv \"$1/venv\"; \"$1/venv/bin/pip\" -q install \"$3\"\n\
                  printf %s \"$2 $3\" > \"$1/installed.txt\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(&folder).args([PLAYWRIGHT, PROMETHEUS]);
    Background::start("dashboard", command).map(Some)
}
