//! Trains on the same examples in five ways, one after the other, and compares their speed.

use super::Args;
use super::cluster::failed;
use super::loss_chart::{TimeCurve, by_time};
use super::progress::Point;
use crate::say::show;
use ferroflow::{Code, Error, Result};
use std::path::Path;
use std::process::{Command, Stdio};

/// One of the ways to train.
struct Way {
    label: &'static str,
    flags: &'static [&'static str],
    /// Whether there is more than one worker.
    is_cluster: bool,
    /// Whether a global step covers the examples of all workers.
    is_in_step: bool,
}

const WAYS: [Way; 5] = [
    Way { label: "one worker", flags: &["--local"], is_cluster: false, is_in_step: false },
    Way { label: "between-graph, sync", flags: &["--sync"], is_cluster: true, is_in_step: true },
    Way { label: "between-graph, async", flags: &["--async"], is_cluster: true, is_in_step: false },
    Way { label: "in-graph, sync", flags: &["--in-graph"], is_cluster: true, is_in_step: true },
    Way {
        label: "in-graph, async",
        flags: &["--in-graph", "--async"],
        is_cluster: true,
        is_in_step: false,
    },
];

/// The result of one way.
struct Measured {
    label: &'static str,
    seconds: f64,
    examples: f64,
    points: Vec<(f64, f32)>,
    score: Option<f64>,
}

impl Measured {
    fn rate(&self) -> f64 {
        self.examples / self.seconds.max(1e-9)
    }
}

/// Runs all ways and prints the comparison. `--steps` are the steps of a worker of the cluster.
pub fn run(args: &Args) -> Result<()> {
    let out = args.out();
    let each = args.steps();
    let mut all: Vec<Measured> = Vec::new();
    for way in &WAYS {
        let measured = measure(args, way, each, &out.join(way.label.replace([' ', ','], "-")))?;
        let gain = all.first().map_or(1.0, |one| measured.rate() / one.rate());
        report(args, &measured, gain);
        all.push(measured);
    }
    let curve = |m: &Measured| TimeCurve {
        label: format!("{}, {:.0} examples/s", m.label, m.rate()),
        points: m.points.clone(),
    };
    let curves: Vec<TimeCurve> = all.iter().map(curve).collect();
    let chart = by_time(&args.what(), &curves)?;
    let picture = out.join("compare.svg");
    std::fs::write(&picture, chart)
        .map_err(|e| Error::new(Code::Internal, format!("{}: {e}", picture.display())))?;
    if !args.json {
        show!("chart {}", picture.display());
    }
    Ok(())
}

fn report(args: &Args, m: &Measured, gain: f64) {
    if args.json {
        let json = serde_json::json!({
            "way": m.label,
            "workers": args.workers,
            "seconds": m.seconds,
            "examples": m.examples,
            "examples_per_second": m.rate(),
            "gain": gain,
            "score": m.score,
        });
        show!("{json}");
        return;
    }
    let score = m.score.map(|score| format!(", score {score:.3}")).unwrap_or_default();
    show!(
        "{:<22} {:>8.2} s  {:>9.0} examples/s  {gain:>5.2}x{score}",
        m.label,
        m.seconds,
        m.rate()
    );
}

/// Trains one way in processes of its own.
fn measure(args: &Args, way: &Way, each: i64, out: &Path) -> Result<Measured> {
    let workers = args.workers as i64;
    let steps = if way.is_in_step { each } else { each * workers };
    let batch = args.batch();
    // An earlier comparison must not be resumed.
    let _ = std::fs::remove_dir_all(out);
    let program = crate::own_program().map_err(|e| failed("cannot find this program", e))?;
    let mut command = Command::new(program);
    command.args(["train", args.model.name(), "--json", "--pin"]).args(way.flags);
    command.args(["--steps", &steps.to_string(), "--batch", &batch.to_string()]);
    command.args(["--learning-rate", &args.learning_rate().to_string()]);
    command.args(["--seed", &args.seed.to_string(), "--save-steps", &steps.to_string()]);
    command.arg("--out").arg(out);
    if way.is_cluster {
        command.args(["--ps", &args.ps.to_string(), "--workers", &args.workers.to_string()]);
    }
    if let Some(data) = &args.data {
        command.arg("--data").arg(data);
    }
    if args.synthetic {
        command.arg("--synthetic");
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).env_remove("TF_CONFIG");
    let ended = command.output().map_err(|e| failed(way.label, e))?;
    if !ended.status.success() {
        return Err(failed(way.label, String::from_utf8_lossy(&ended.stderr)));
    }
    let said = String::from_utf8_lossy(&ended.stdout);
    let lines = said.lines().filter_map(|line| serde_json::from_str(line).ok());
    let lines: Vec<serde_json::Value> = lines.collect();
    let points = lines.iter().filter_map(Point::from_json);
    let points: Vec<(f64, f32)> = points.map(|(_, point)| (point.seconds, point.loss)).collect();
    let summary = lines.iter().rev().find(|line| line["done"].as_bool() == Some(true));
    let seconds = summary.and_then(|line| line["seconds"].as_f64());
    let seconds = seconds.ok_or_else(|| failed(way.label, "gave no summary"))?;
    let score = ["test_accuracy", "test_loss"].iter().find_map(|name| summary?[*name].as_f64());
    let examples = (each * workers) as f64 * batch as f64;
    Ok(Measured { label: way.label, seconds, examples, points, score })
}
