//! Finds the task that the others of its job wait for, and the phase in which it is slow.

use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};

/// A task is a straggler if a step keeps it busy for this much longer than the others of its job.
const SLOWER: f64 = 1.3;
/// Differences below this many seconds in a step are noise.
const LEAST: f64 = 2e-4;
/// Observations in a row before a straggler is named.
const TIMES: u32 = 3;
/// The number of past periods to keep.
const MOST_PERIODS: usize = 64;
/// The phases in which a task is busy, by their index in a snapshot.
const BUSY: [(usize, &str); 3] = [(0, "input"), (1, "compute"), (2, "send")];
/// The phase in which it waits for values of other tasks.
const WAIT: (usize, &str) = (3, "wait");

/// The work of a task between two observations.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskWork {
    pub name: String,
    pub job: String,
    pub steps: f64,
    /// Whether these are steps of the task's own client, and not parts of steps of others.
    pub has_client: bool,
    /// Seconds in input, compute, send and wait.
    pub phases: [f64; 4],
    /// The task for whose values it waited longest.
    pub waits_for: Option<String>,
}

impl TaskWork {
    fn in_a_step(&self, phase: usize) -> f64 {
        self.phases[phase] / self.steps.max(1.0)
    }

    fn busy(&self) -> f64 {
        BUSY.iter().map(|(phase, _)| self.in_a_step(*phase)).sum()
    }

    fn whole(&self) -> f64 {
        self.busy() + self.in_a_step(WAIT.0)
    }
}

/// A slow task.
#[derive(Clone, Debug, PartialEq)]
pub struct Straggler {
    pub name: String,
    pub phase: &'static str,
    /// Seconds of a step in this phase, and the median of the other tasks.
    pub seconds: f64,
    pub others: f64,
    /// The task for whose values it waits, if it is slow in wait.
    pub waits_for: Option<String>,
    /// When it became a straggler, in seconds since 1970.
    pub since: f64,
    /// When it had caught up again. `None` if it was slow to the end.
    pub until: Option<f64>,
}

impl Straggler {
    pub fn to_json(&self) -> Value {
        json!({
            "task": self.name,
            "phase": self.phase,
            "seconds": self.seconds,
            "others": self.others,
            "waits_for": self.waits_for,
            "since": self.since,
        })
    }

    pub fn text(&self) -> String {
        let time = match self.until {
            None => format!("since {}", clock(self.since)),
            Some(until) => format!("from {} to {}", clock(self.since), clock(until)),
        };
        let cause = self.waits_for.as_ref().map(|peer| format!(" for values of {peer}"));
        format!(
            "straggler: {} spends {:.2} ms of each step in {}{}, the others {:.2} ms ({time})",
            self.name,
            self.seconds * 1e3,
            self.phase,
            cause.unwrap_or_default(),
            self.others * 1e3,
        )
    }
}

/// The time of day in UTC.
pub fn clock(seconds: f64) -> String {
    let s = seconds as u64;
    format!("{:02}:{:02}:{:02} UTC", s / 3600 % 24, s / 60 % 60, s % 60)
}

/// The slowest task of each job that has at least two tasks, if it is slow enough.
pub fn slowest(work: &[TaskWork], now: f64) -> Vec<Straggler> {
    let mut jobs: Vec<&str> = work.iter().map(|w| w.job.as_str()).collect();
    jobs.sort_unstable();
    jobs.dedup();
    jobs.into_iter().filter_map(|job| slowest_of(work, job, now)).collect()
}

fn slowest_of(work: &[TaskWork], job: &str, now: f64) -> Option<Straggler> {
    let of_job: Vec<&TaskWork> = work.iter().filter(|w| w.job == job && w.steps > 0.0).collect();
    busiest(&of_job, now).or_else(|| longest(&of_job, now))
}

/// The task that is busy for longest.
fn busiest(of_job: &[&TaskWork], now: f64) -> Option<Straggler> {
    let (slow, others) = most(of_job, TaskWork::busy)?;
    let excess = |phase: usize| slow.in_a_step(phase) - usual(&others, phase);
    let phase = BUSY.iter().max_by(|a, b| excess(a.0).total_cmp(&excess(b.0)))?;
    Some(straggler(slow, &others, *phase, now))
}

/// The task whose steps take longest because it waits: its link or its parameter server is slow.
/// Tasks that train synchronously have steps of the same length. Parts of steps are ignored,
/// because they wait for the client of another task.
fn longest(of_job: &[&TaskWork], now: f64) -> Option<Straggler> {
    if !of_job.iter().all(|work| work.has_client) {
        return None;
    }
    let (slow, others) = most(of_job, TaskWork::whole)?;
    let waits_for = slow.waits_for.clone();
    Some(Straggler { waits_for, ..straggler(slow, &others, WAIT, now) })
}

/// The task with the largest time in a step, and the others, if the difference is large.
fn most<'w>(
    of_job: &[&'w TaskWork],
    time: impl Fn(&TaskWork) -> f64,
) -> Option<(&'w TaskWork, Vec<&'w TaskWork>)> {
    let slow = *of_job.iter().max_by(|a, b| time(a).total_cmp(&time(b)))?;
    let others: Vec<&TaskWork> = of_job.iter().filter(|w| w.name != slow.name).copied().collect();
    let usual = median(others.iter().map(|w| time(w)))?;
    (time(slow) >= usual * SLOWER && time(slow) - usual >= LEAST).then_some((slow, others))
}

/// Seconds of the other tasks in a phase of a step.
fn usual(others: &[&TaskWork], phase: usize) -> f64 {
    median(others.iter().map(|w| w.in_a_step(phase))).unwrap_or(0.0)
}

fn straggler(
    slow: &TaskWork,
    others: &[&TaskWork],
    phase: (usize, &'static str),
    now: f64,
) -> Straggler {
    Straggler {
        name: slow.name.clone(),
        phase: phase.1,
        seconds: slow.in_a_step(phase.0),
        others: usual(others, phase.0),
        waits_for: None,
        since: now,
        until: None,
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

/// Names lasting stragglers, with the time at which they became slow.
#[derive(Debug, Default)]
pub struct StragglerWatch {
    seen: Vec<(Straggler, u32)>,
    /// Named stragglers that have caught up, or whose job has paused or ended, in order of time.
    past: VecDeque<Straggler>,
}

impl StragglerWatch {
    /// Takes the stragglers of one observation at the time `now`. While a job runs no steps, its
    /// observations are ignored.
    pub fn observe(&mut self, found: Vec<Straggler>, is_running: bool, now: f64) {
        let mut seen = Vec::new();
        for mut straggler in found {
            let before = self.seen.iter().find(|(old, _)| old.name == straggler.name);
            let mut times = 1;
            if let Some((old, count)) = before {
                straggler.since = old.since;
                times = count + 1;
            }
            seen.push((straggler, times));
        }
        let is_gone = |old: &Straggler| !seen.iter().any(|(s, _)| s.name == old.name);
        let gone: Vec<Straggler> = self.named().filter(|s| is_gone(s)).cloned().collect();
        for straggler in gone {
            if self.past.len() == MOST_PERIODS {
                self.past.pop_front();
            }
            self.past.push_back(Straggler { until: is_running.then_some(now), ..straggler });
        }
        self.seen = seen;
    }

    /// Stragglers of enough observations in a row.
    pub fn named(&self) -> impl Iterator<Item = &Straggler> {
        self.seen.iter().filter(|(_, times)| *times >= TIMES).map(|(straggler, _)| straggler)
    }

    /// The longest period in which each task was a straggler, including the current one.
    pub fn periods(&self, now: f64) -> Vec<&Straggler> {
        let length = |s: &Straggler| s.until.unwrap_or(now) - s.since;
        let mut all: Vec<&Straggler> = self.past.iter().chain(self.named()).collect();
        all.sort_by(|a, b| length(b).total_cmp(&length(a)));
        let mut names = BTreeSet::new();
        all.retain(|s| names.insert(&s.name));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(name: &str, job: &str, phases: [f64; 4]) -> TaskWork {
        TaskWork {
            name: name.into(),
            job: job.into(),
            steps: 10.0,
            has_client: job == "worker",
            phases,
            waits_for: Some("ps 0".into()),
        }
    }

    #[test]
    fn the_task_that_computes_longest_is_named_with_its_phase() {
        let all = [
            work("worker 0", "worker", [0.01, 0.1, 0.01, 0.5]),
            work("worker 1", "worker", [0.01, 0.6, 0.01, 0.0]),
            work("worker 2", "worker", [0.01, 0.11, 0.01, 0.5]),
            work("ps 0", "ps", [0.0, 5.0, 0.0, 0.0]),
        ];
        let found = slowest(&all, 7.0);
        assert_eq!(found.len(), 1, "one ps has nothing to be compared with: {found:?}");
        assert_eq!((found[0].name.as_str(), found[0].phase), ("worker 1", "compute"));
        assert!((found[0].seconds - 0.06).abs() < 1e-9 && (found[0].others - 0.011).abs() < 1e-9);
        let text = found[0].text();
        assert!(text.contains("worker 1 spends 60.00 ms of each step in compute"), "{text}");
    }

    #[test]
    fn waiting_tasks_and_small_differences_are_no_stragglers() {
        let all = [
            work("rank 0", "rank", [0.0, 0.1, 0.0, 9.0]),
            work("rank 1", "rank", [0.0, 0.11, 0.0, 0.0]),
        ];
        assert_eq!(slowest(&all, 0.0), []);
        let idle = TaskWork { steps: 0.0, ..work("rank 2", "rank", [9.0; 4]) };
        assert_eq!(slowest(&[idle], 0.0), []);
    }

    #[test]
    fn a_task_whose_steps_are_long_because_it_waits_is_named_with_the_task_it_waits_for() {
        // Asynchronous workers: the link of the second one is slow.
        let all = [
            work("worker 0", "worker", [0.0, 0.1, 0.01, 0.05]),
            work("worker 1", "worker", [0.0, 0.1, 0.01, 0.60]),
            work("worker 2", "worker", [0.0, 0.1, 0.01, 0.06]),
        ];
        let found = slowest(&all, 7.0);
        let text = found[0].text();
        let want =
            "worker 1 spends 60.00 ms of each step in wait for values of ps 0, the others 6.00 ms";
        assert!(text.contains(want), "{text}");
        // Parts of steps wait for the client.
        let parts = all.map(|w| TaskWork { job: "ps".into(), has_client: false, ..w });
        assert_eq!(slowest(&parts, 0.0), []);
        // Synchronous workers wait for the slow one, which is busy: their steps are equally long.
        let all = [
            work("worker 0", "worker", [0.0, 0.1, 0.0, 0.5]),
            work("worker 1", "worker", [0.0, 0.59, 0.0, 0.0]),
            work("worker 2", "worker", [0.0, 0.1, 0.0, 0.49]),
        ];
        let found = slowest(&all, 0.0);
        assert_eq!((found[0].name.as_str(), found[0].phase), ("worker 1", "compute"));
    }

    #[test]
    fn a_straggler_is_named_after_three_observations_since_the_first() {
        let one = |since| Straggler {
            name: "rank 1".into(),
            phase: "input",
            seconds: 1.0,
            others: 0.1,
            waits_for: None,
            since,
            until: None,
        };
        let mut watch = StragglerWatch::default();
        watch.observe(vec![one(1.0)], true, 1.0);
        watch.observe(vec![one(2.0)], true, 2.0);
        assert_eq!(watch.named().count(), 0);
        watch.observe(vec![one(3.0)], true, 3.0);
        assert_eq!(watch.named().map(|s| s.since).collect::<Vec<_>>(), [1.0]);
        watch.observe(vec![], true, 4.0);
        assert_eq!(watch.named().count(), 0);
        let times = |s: &&Straggler| (s.since, s.until);
        assert_eq!(watch.periods(5.0).iter().map(times).collect::<Vec<_>>(), [(1.0, Some(4.0))]);
        // The second period is longer, and the job ends in it.
        (5..12).for_each(|t| watch.observe(vec![one(t.into())], true, t.into()));
        watch.observe(vec![], false, 12.0);
        assert_eq!(watch.periods(13.0).iter().map(times).collect::<Vec<_>>(), [(5.0, None)]);
        let text = watch.periods(13.0)[0].text();
        assert!(text.ends_with("(since 00:00:05 UTC)"), "{text}");
    }
}
