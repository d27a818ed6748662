//! The dashboard in a real browser: `page.mjs` looks at it, and this starts what it looks at.

use crate::common::{Lines, Running, ferroflow, folder};
use crate::{failure, installed};
use ferroflow_metrics::TaskMetrics;
use ferroflow_observe::{BackgroundHttp, HttpOptions, TaskPages};
use serde_json::json;
use std::process::{Command, Stdio};
use std::sync::Arc;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/observe/page.mjs");

pub fn missing() -> Option<String> {
    let modules = installed().join("node_modules/playwright-core");
    failure("chromium", Command::new("chromium").arg("--version"))
        .or_else(|| failure("node", Command::new("node").arg("--version")))
        .or_else(|| (!modules.exists()).then(|| "playwright-core is not installed".into()))
}

/// Runs the script against a page. It fails with what it has found wrong.
fn look(what: &str, url: &str) {
    let mut node = Command::new("node");
    node.args([SCRIPT, what, url]).env("NODE_MODULES", installed().join("node_modules"));
    if let Some(shots) = std::env::var_os("DASHBOARD_SCREENSHOTS") {
        node.env("DASHBOARD_SCREENSHOTS", shots);
    }
    let done = node.output().unwrap();
    let (out, errors) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{out}\n{errors}");
    print!("{out}");
}

pub fn the_page_shows_a_training_job() {
    let out = folder("dashboard");
    let mut job = ferroflow(&["train", "mlp", "--dashboard", "--workers", "3", "--ps", "2"]);
    job.args(["--steps", "1000000", "--save-steps", "200", "--out"]).arg(&out);
    let mut job = Running(job.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let errors = Lines::of(job.0.stderr.take().unwrap());
    let url = errors.wait_for("dashboard: http://").replace("dashboard: ", "");
    look("job", &url);
    job.signal("TERM");
    job.end();
    let _ = std::fs::remove_dir_all(&out);
}

pub fn names_from_outside_are_text() {
    let hostile = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>";
    let metrics = TaskMetrics::new(hostile, 0);
    metrics.report_scalar(hostile, 1, 0.5);
    metrics.report_scalar(hostile, 2, 0.25);
    metrics.log_line(hostile);
    metrics.set_graph(json!({"placed": true, "total": 1, "nodes": [
        {"name": hostile, "op": hostile, "task": hostile, "shape": hostile, "inputs": [hostile]}
    ]}));
    let step = std::time::Duration::from_millis(1);
    (0..5).for_each(|id| metrics.rank_step(id, step, step / 4, step / 4));
    metrics.sent_value(hostile, 100);
    // A wait is shown as long as it lasts.
    let (waiting, peer) = (metrics.clone(), metrics.peer(hostile));
    std::thread::spawn(move || {
        loop {
            waiting.waited_for(&peer, step);
            std::thread::sleep(step * 50);
        }
    });
    let options = HttpOptions::parse("127.0.0.1:0", Default::default(), false).unwrap();
    let pages = TaskPages { metrics, is_open: false };
    let task = BackgroundHttp::start(options, Arc::new(pages)).unwrap();
    let address = task.url().trim_start_matches("http://");
    let mut page = ferroflow(&["dashboard", address, "--bind", "127.0.0.1:0"]);
    let mut page = Running(page.stdout(Stdio::piped()).spawn().unwrap());
    let lines = Lines::of(page.0.stdout.take().unwrap());
    let url = lines.wait_for("dashboard http://").replace("dashboard ", "");
    look("hostile", &url);
}
