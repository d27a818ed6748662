//! Shows the progress of training: a progress bar on a terminal, plain lines elsewhere, or JSON.

use super::Args;
use super::loss_chart::LossCurve;
use super::run::TrainOutcome;
use crate::say::show;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// One report of a worker's training loop.
#[derive(Clone, Debug, Default)]
pub struct Point {
    pub local: i64,
    pub global: i64,
    pub loss: f32,
    pub seconds: f64,
    pub shown: Vec<(String, f32)>,
}

impl Point {
    pub fn to_json(&self, worker: usize) -> serde_json::Value {
        let mut json = serde_json::json!({
            "worker": worker,
            "local_step": self.local,
            "global_step": self.global,
            "loss": self.loss,
            "seconds": self.seconds,
        });
        for (name, value) in &self.shown {
            json[name] = (*value).into();
        }
        json
    }

    pub fn from_json(json: &serde_json::Value) -> Option<(usize, Point)> {
        let known = ["worker", "local_step", "global_step", "loss", "seconds"];
        let shown = json.as_object()?.iter().filter(|(key, _)| !known.contains(&key.as_str()));
        let point = Point {
            local: json["local_step"].as_i64()?,
            global: json["global_step"].as_i64()?,
            // A loss that is not finite is null in JSON.
            loss: json["loss"].as_f64().unwrap_or(f64::NAN) as f32,
            seconds: json["seconds"].as_f64()?,
            shown: shown.filter_map(|(key, v)| Some((key.clone(), v.as_f64()? as f32))).collect(),
        };
        Some((usize::try_from(json["worker"].as_u64()?).ok()?, point))
    }
}

/// Shows progress and records the loss curve of each worker.
pub struct TrainProgress {
    is_json: bool,
    steps: i64,
    workers: Vec<Point>,
    curves: Vec<LossCurve>,
    printed: Option<Instant>,
    /// Step and time from which the rate is measured.
    first: Option<(i64, Instant)>,
    /// Draws on a terminal only.
    bar: Option<ProgressBar>,
}

/// Time between two lines on an output that is neither a terminal nor JSON.
const PLAIN_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two reports on a terminal or in JSON.
const WATCHED_INTERVAL: Duration = Duration::from_millis(100);

impl TrainProgress {
    pub fn new(is_json: bool, steps: i64, workers: usize) -> TrainProgress {
        let curve = |i| LossCurve { label: format!("worker {i}"), points: Vec::new() };
        TrainProgress {
            is_json,
            steps,
            workers: vec![Point::default(); workers],
            curves: (0..workers).map(curve).collect(),
            printed: None,
            first: None,
            bar: (!is_json && std::io::stdout().is_terminal()).then(|| progress_bar(steps)),
        }
    }

    /// The loss curves of the workers that reported a loss.
    pub fn curves(&self) -> Vec<LossCurve> {
        self.curves.iter().filter(|c| !c.points.is_empty()).cloned().collect()
    }

    pub fn title(&self, text: &str) {
        if !self.is_json {
            show!("{text}");
        }
    }

    /// Records a report of a worker, and shows it unless one was shown a moment ago.
    pub fn show(&mut self, worker: usize, point: &Point) {
        let Some(slot) = self.workers.get_mut(worker) else { return };
        *slot = point.clone();
        let curve = &mut self.curves[worker].points;
        if curve.last().is_none_or(|(step, _)| *step < point.global) {
            curve.push((point.global, point.loss));
        }
        let first = *self.first.get_or_insert((point.global, Instant::now()));
        let is_last = point.global >= self.steps;
        let is_watched = self.bar.is_some() || self.is_json;
        let interval = if is_watched { WATCHED_INTERVAL } else { PLAIN_INTERVAL };
        if self.printed.is_some_and(|at| at.elapsed() < interval) && !is_last {
            return;
        }
        self.printed = Some(Instant::now());
        let elapsed = first.1.elapsed().as_secs_f64();
        let rate = if elapsed > 0.0 { (point.global - first.0) as f64 / elapsed } else { 0.0 };
        let text = self.text(point, rate);
        match &self.bar {
            Some(bar) => {
                bar.set_message(text);
                bar.set_position(u64::try_from(point.global).unwrap_or(0));
            }
            None => {
                let mut out = std::io::stdout().lock();
                // Ignore the error: a closed output must not end training.
                let _ = match self.is_json {
                    true => writeln!(out, "{}", point.to_json(worker)),
                    false => writeln!(out, "step {:>5}/{}{text}", point.global, self.steps),
                };
            }
        }
    }

    fn text(&self, point: &Point, rate: f64) -> String {
        let mut text = format!("  {rate:>6.0} steps/s  loss {:<9.4}", point.loss);
        for (name, value) in &point.shown {
            text += &format!("  {name} {value:.3}");
        }
        if self.workers.len() > 1 {
            let each = self.workers.iter().enumerate();
            let each: Vec<String> =
                each.map(|(i, p)| format!("{i}: {}/{}", p.local, p.global)).collect();
            text += &format!("  workers (local/global) {}", each.join("  "));
        }
        text
    }

    /// Reports an unusual event, such as a restarted task.
    pub fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| show!("{text}")),
            None if self.is_json => show!("{}", serde_json::json!({"note": text})),
            None => show!("{text}"),
        }
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.abandon();
        }
    }

    /// Prints the result, the paths of the files, and the commands that show them.
    pub fn summary(&self, args: &Args, o: &TrainOutcome, out: &Path, interrupted: bool) {
        let trained = o.step - o.first_step;
        let rate = if o.seconds > 0.0 { trained as f64 / o.seconds } else { 0.0 };
        if self.is_json {
            let mut json = serde_json::json!({
                "done": true,
                "model": args.model.name(),
                "global_step": o.step,
                "resumed_from": o.first_step,
                "seconds": o.seconds,
                "steps_per_second": rate,
                "interrupted": interrupted,
                "checkpoint": o.checkpoint,
            });
            let score = o.score.map(|(name, value)| (name.replace(' ', "_"), value));
            let shown = o.shown.iter().map(|(name, value)| (name.to_string(), *value));
            for (name, value) in shown.chain(score) {
                json[name] = value.into();
            }
            if let Some(stale) = o.stale {
                json["stale_steps"] = stale.into();
            }
            show!("{json}");
            return;
        }
        if trained == 0 && !interrupted {
            show!("already at step {}: train on with --steps, or choose another --out", o.step);
        } else {
            let how = if interrupted { "interrupted" } else { "trained" };
            let from = match o.first_step {
                0 => String::new(),
                step => format!(", resumed at step {step}"),
            };
            show!("{how}: {trained} steps in {:.2} s ({rate:.0} steps/s){from}", o.seconds);
        }
        let shown = o.shown.iter().copied().chain(o.score);
        let shown: Vec<String> = shown.map(|(name, v)| format!("{name} {v:.4}")).collect();
        let goal = args.goal().filter(|_| !interrupted);
        let goal = goal.map(|(name, value)| format!("   (stated: {name} {value})"));
        show!("result: {}{}", shown.join("  "), goal.unwrap_or_default());
        if let Some(stale) = o.stale {
            show!("stale: {stale} steps of workers came too late; their gradients were dropped");
        }
        if let Some(checkpoint) = &o.checkpoint {
            show!("checkpoint: {checkpoint}   (ferroflow inspect {checkpoint})");
        }
        if interrupted {
            show!("the same command goes on from there");
        }
        show!("events: tensorboard --logdir {}", out.display());
        show!("loss curve: {}", out.join("loss.svg").display());
    }
}

fn progress_bar(steps: i64) -> ProgressBar {
    let length = u64::try_from(steps).unwrap_or(0);
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stdout());
    // A template that does not parse leaves the default style, which shows the same numbers.
    if let Ok(style) = ProgressStyle::with_template("step {pos:>5}/{len} {bar:20}{msg}") {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_survive_json() {
        let shown = vec![("W".to_string(), 2.0)];
        let point = Point { local: 3, global: 7, loss: 0.5, seconds: 1.5, shown };
        let (worker, back) = Point::from_json(&point.to_json(1)).unwrap();
        assert_eq!((worker, back.global, back.loss, back.shown), (1, 7, 0.5, point.shown));
    }
}
