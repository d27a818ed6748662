//! Recommends a strategy and its number of workers and servers.

use super::{PlannedJob, Strategy};
use serde_json::{Value, json};

/// A strategy and the job that uses it.
#[derive(Clone, Copy)]
pub struct Choice {
    pub strategy: Strategy,
    /// The job, with the number of workers and servers that the strategy uses.
    pub job: PlannedJob,
}

/// A choice this close to the fastest wins if it needs fewer machines.
const NEAR: f64 = 0.99;

impl Choice {
    /// Speed-up over one worker.
    fn speedup(&self) -> f64 {
        self.job.n * self.job.efficiency(self.strategy)
    }

    fn machines(&self) -> f64 {
        self.job.n + self.job.servers
    }

    pub fn report(&self) -> Value {
        json!({
            "strategy": self.strategy.name(),
            "workers": self.job.n,
            "servers": self.job.servers,
            "step_seconds": self.job.step_time(self.strategy),
            "efficiency": self.job.efficiency(self.strategy),
            "speedup": self.speedup(),
            "command": self.command(),
        })
    }

    /// The recommendation as text; `of` is the whole job.
    pub fn explained(&self, of: &PlannedJob) -> String {
        if self.job.n == 1.0 {
            if of.n == 1.0 {
                return "one worker alone".into();
            }
            let all = with_all_workers(of);
            let (n, how, speedup) = (of.n, all.how(), all.speedup());
            return format!(
                "one worker alone; the link is too slow for this model: {n} workers with {how} would be \
                 {speedup:.2} times as fast"
            );
        }
        let (n, how, speedup) = (self.job.n, self.how(), self.speedup());
        let command = self.command();
        let percent = self.job.efficiency(self.strategy) * 100.0;
        let fewer = if n < of.n { "; more workers gain less than 1%" } else { "" };
        format!(
            "{n} workers with {how}: {speedup:.2} times as fast as one, efficiency {percent:.2}%{fewer}\n  {command}"
        )
    }

    /// The command that starts the job of this choice.
    fn command(&self) -> String {
        let PlannedJob { n, servers: k, .. } = self.job;
        match self.strategy {
            Strategy::Ring => format!("ferroflow run -np {n}"),
            Strategy::Servers => format!("ferroflow run -np {n} --servers {k} --servers-only"),
            Strategy::Split => format!("ferroflow run -np {n} --servers {k}"),
        }
    }

    fn how(&self) -> String {
        match (self.strategy, self.job.servers) {
            (Strategy::Ring, _) => "all-reduce".into(),
            (Strategy::Servers, 1.0) => "1 parameter server".into(),
            (Strategy::Servers, k) => format!("{k} parameter servers"),
            (Strategy::Split, 1.0) => "all-reduce and 1 CPU server".into(),
            (Strategy::Split, k) => format!("all-reduce and {k} CPU servers"),
        }
    }
}

/// The fewest workers and servers whose speed is within 1 % of the best.
pub fn recommended(job: &PlannedJob) -> Choice {
    best(job, &counts(job.n))
}

/// The best choice that uses all workers.
pub fn with_all_workers(job: &PlannedJob) -> Choice {
    best(job, &[job.n])
}

fn best(job: &PlannedJob, workers: &[f64]) -> Choice {
    let all = || workers.iter().flat_map(|&n| with_workers(job, n));
    let fastest = all().map(|c| c.speedup()).fold(0.0, f64::max);
    let near = all().filter(|c| c.speedup() >= NEAR * fastest);
    // Among equally many machines, the faster choice wins. At equal speed, the simpler one wins,
    // which comes first.
    let order = |a: &Choice, b: &Choice| {
        let machines = a.machines().total_cmp(&b.machines());
        machines.then(b.speedup().total_cmp(&a.speedup()))
    };
    let found = near.min_by(order);
    found.unwrap_or(Choice { strategy: Strategy::Ring, job: PlannedJob { servers: 0.0, ..*job } })
}

fn with_workers(job: &PlannedJob, n: f64) -> Vec<Choice> {
    let with = |strategy, servers| Choice { strategy, job: PlannedJob { n, servers, ..*job } };
    let mut all = vec![with(Strategy::Ring, 0.0)];
    for k in counts(job.servers.min(n)).into_iter().filter(|k| *k <= job.servers) {
        all.extend([with(Strategy::Servers, k), with(Strategy::Split, k)]);
    }
    all
}

/// Candidate numbers from 1 to `most`: all small ones, and larger ones at growing distances.
fn counts(most: f64) -> Vec<f64> {
    let mut all = vec![1.0];
    let mut last = 1.0f64;
    while last < most {
        last = (last * 1.05).floor().max(last + 1.0).min(most);
        all.push(last);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(bytes: f64, link: f64, n: f64, servers: f64) -> PlannedJob {
        PlannedJob { bytes, link, n, step: 0.1, servers, overlap: 0.0 }
    }

    fn how(job: &PlannedJob) -> (f64, String) {
        let found = recommended(job);
        (found.job.n, found.how())
    }

    #[test]
    fn a_slow_link_is_not_recommended() {
        let vgg16 = PlannedJob { step: 0.55, ..job(553.36e6, 125e6, 4.0, 4.0) };
        let found = recommended(&vgg16);
        assert_eq!((found.job.n, found.job.servers), (1.0, 0.0));
        let text = found.explained(&vgg16);
        assert!(text.starts_with("one worker alone; "), "{text}");
        assert!(text.ends_with("4 workers with 4 parameter servers would be 0.44 times as fast"));
        let one = job(1e8, 1e8, 1.0, 1.0);
        assert_eq!(recommended(&one).explained(&one), "one worker alone");
    }

    #[test]
    fn servers_are_recommended_where_they_help() {
        assert_eq!(how(&job(1e6, 12.5e9, 4.0, 4.0)), (4.0, "all-reduce".into()));
        assert_eq!(how(&job(1e8, 1.25e9, 4.0, 4.0)), (4.0, "4 parameter servers".into()));
        assert_eq!(how(&job(1e8, 1.25e9, 4.0, 0.0)), (4.0, "all-reduce".into()));
        let two = job(1e8, 1.25e9, 4.0, 2.0);
        assert_eq!(how(&two), (4.0, "all-reduce and 2 CPU servers".into()));
        assert!(recommended(&two).explained(&two).ends_with("ferroflow run -np 4 --servers 2"));
    }

    #[test]
    fn the_recommendation_is_the_fastest_there_is_but_for_one_percent() {
        for (link, n, k) in [(1e8, 9.0, 9.0), (1e9, 9.0, 3.0), (1e10, 16.0, 4.0), (1e9, 40.0, 40.0)]
        {
            let job = job(1e8, link, n, k);
            let found = recommended(&job).speedup();
            let mut fastest = 1.0f64;
            for n in 1..=n as u32 {
                for k in 1..=(k as u32).min(n) {
                    let tried = PlannedJob { n: f64::from(n), servers: f64::from(k), ..job };
                    for strategy in Strategy::ALL {
                        fastest = fastest.max(tried.n * tried.efficiency(strategy));
                    }
                }
            }
            assert!(found >= NEAR * fastest, "{found} for {fastest}");
        }
    }

    #[test]
    fn many_workers_are_not_tried_one_by_one() {
        let all = counts(f64::from(u32::MAX));
        assert!(all.len() < 500 && all.is_sorted(), "{}", all.len());
        assert_eq!(all.last(), Some(&f64::from(u32::MAX)));
        assert_eq!(counts(3.0), [1.0, 2.0, 3.0]);
    }
}
