//! How many steps a job has made, and how many it makes in a second.

use serde_json::Value;
use std::collections::VecDeque;

/// The seconds over which the rate of global steps is measured.
const WINDOW: f64 = 5.0;

/// What a step of the job is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepKind {
    /// A global step, which all workers make together or in turns: tasks report its number.
    Global,
    /// A step that all ranks make.
    Rank,
    /// A step of any client.
    Client,
}

impl StepKind {
    pub fn name(self) -> &'static str {
        match self {
            StepKind::Global => "global",
            StepKind::Rank => "rank",
            StepKind::Client => "client",
        }
    }
}

/// The progress of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobRate {
    pub kind: StepKind,
    pub steps: f64,
    pub rate: f64,
}

/// The global steps that tasks have reported lately, with the times of the reports.
#[derive(Debug, Default)]
pub struct GlobalSteps(VecDeque<(f64, f64)>);

impl GlobalSteps {
    /// A task reports that the job has reached `step`.
    pub fn reached(&mut self, step: f64, time: f64) {
        match self.0.back() {
            // Another task was faster.
            Some((_, last)) if step <= *last && *last - step < 1000.0 => return,
            // A job that was restored starts again at an earlier step.
            Some((_, last)) if step < *last => self.0.clear(),
            _ => {}
        }
        self.0.push_back((time, step));
        while self.0.len() > 2 && self.0[1].0 < time - WINDOW {
            self.0.pop_front();
        }
    }

    fn rate(&self, now: f64) -> Option<JobRate> {
        let (first, last) = (self.0.front()?, self.0.back()?);
        // A job that makes no steps becomes slower with every second.
        let end = if now - last.0 > WINDOW { now } else { last.0 };
        let time = end - first.0;
        // Reports of two tasks at the same moment tell no rate.
        let rate = if time >= 1.0 { (last.1 - first.1) / time } else { 0.0 };
        Some(JobRate { kind: StepKind::Global, steps: last.1, rate })
    }
}

/// The progress of a job from the states and rates of its tasks.
pub fn job_rate<'t>(
    tasks: impl Iterator<Item = (&'t Value, &'t Value)>,
    global: &GlobalSteps,
    now: f64,
) -> JobRate {
    let tasks: Vec<(&Value, &Value)> = tasks.collect();
    let is_rank = |now: &Value| now["job"] == "rank";
    let number = |value: &Value| value["steps"].as_f64().unwrap_or(0.0);
    let values = |kind: StepKind| {
        let of_kind = tasks.iter().filter(move |t| kind == StepKind::Client || is_rank(t.0));
        of_kind.map(|(now, rates)| (number(now), number(rates)))
    };
    if let Some(found) = global.rate(now) {
        return found;
    }
    match tasks.iter().any(|(now, _)| is_rank(now)) {
        true => {
            let all = values(StepKind::Rank);
            let (steps, rate) = all
                .fold((0.0, 0.0), |(s, r): (f64, f64), (steps, rate)| (s.max(steps), r.max(rate)));
            JobRate { kind: StepKind::Rank, steps, rate }
        }
        false => {
            let all = values(StepKind::Client);
            let (steps, rate) = all.fold((0.0, 0.0), |(s, r), (steps, rate)| (s + steps, r + rate));
            JobRate { kind: StepKind::Client, steps, rate }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(tasks: &[(Value, Value)], global: &GlobalSteps, now: f64) -> JobRate {
        job_rate(tasks.iter().map(|(now, rates)| (now, rates)), global, now)
    }

    #[test]
    fn ranks_make_their_steps_together_and_clients_make_their_own() {
        let none = GlobalSteps::default();
        let task = |job: &str, steps: u64, rate: f64| {
            (json!({"job": job, "steps": steps}), json!({"steps": rate}))
        };
        let ranks = [task("rank", 40, 9.0), task("rank", 41, 10.0)];
        let want = JobRate { kind: StepKind::Rank, steps: 41.0, rate: 10.0 };
        assert_eq!(of(&ranks, &none, 0.0), want);
        let workers = [task("ps", 0, 0.0), task("worker", 40, 9.0), task("worker", 41, 10.0)];
        let want = JobRate { kind: StepKind::Client, steps: 81.0, rate: 19.0 };
        assert_eq!(of(&workers, &none, 0.0), want);
        assert_eq!(of(&[], &none, 0.0).rate, 0.0);
    }

    #[test]
    fn synchronous_workers_share_the_global_step() {
        let mut global = GlobalSteps::default();
        global.reached(0.0, 0.0);
        global.reached(3.0, 0.01);
        assert_eq!(of(&[], &global, 0.1).rate, 0.0, "too early to tell");
        let mut global = GlobalSteps::default();
        for i in 0..100 {
            let time = f64::from(i) / 10.0;
            // Three workers, which report at different times.
            global.reached(f64::from(2 * i), time);
            global.reached(f64::from(2 * i - 1), time);
        }
        let found = of(&[], &global, 10.0);
        assert_eq!((found.kind, found.steps), (StepKind::Global, 198.0));
        assert!((found.rate - 20.0).abs() < 0.01, "{found:?}");
        let later = of(&[], &global, 60.0);
        assert!(later.rate < 5.0, "it has stopped: {later:?}");
        global.reached(5000.0, 61.0);
        global.reached(100.0, 62.0);
        assert_eq!(of(&[], &global, 62.0).steps, 100.0, "it was restored");
    }
}
