//! The state of a task as JSON, for the dashboard and `ferroflow top`.

use crate::peers::PeerCounters;
use crate::phases::PHASES;
use crate::process::ProcessUse;
use crate::steps::StepRecord;
use crate::task::TaskMetrics;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

/// Steps in a snapshot.
const STEPS: usize = 24;
/// Late ranks in a snapshot.
const LATE: usize = 8;

impl TaskMetrics {
    /// The present state. It has no bytes that depend on the number of steps.
    pub fn snapshot(&self) -> Value {
        let c = &self.counters;
        let used = ProcessUse::read();
        let sample = self.sample.read().unwrap_or_default();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let phases: Vec<f64> = PHASES.iter().map(|p| self.phases.seconds(*p)).collect();
        let recent: Vec<Value> = self.recent.last(STEPS).iter().map(step).collect();
        let late = self.late_ranks(LATE);
        let late: Vec<Value> = late
            .iter()
            .map(|lag| {
                let since = lag.since.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
                json!({
                    "rank": lag.rank,
                    "times": lag.times_last,
                    "seconds": lag.lag.as_secs_f64(),
                    "since": since.map(|at| at.as_secs_f64()),
                })
            })
            .collect();
        let gpus = sample.gpus.iter();
        let gpus: Vec<Value> =
            gpus.map(|g| json!({"name": g.name, "used": g.in_use, "limit": g.limit})).collect();
        json!({
            "job": self.job,
            "task": self.task.load(Ordering::Relaxed),
            "pid": std::process::id(),
            "version": env!("CARGO_PKG_VERSION"),
            "started": self.started,
            "now": now.as_secs_f64(),
            "steps": c.steps.get(),
            "failed_steps": c.failed_steps.get(),
            "parts": c.parts.get(),
            "phases": phases,
            "sessions": c.sessions.get(),
            "connections": c.open_connections.get(),
            "refused": c.refusals.get(),
            "rpcs": c.rpcs.total(),
            "resident": used.resident_bytes,
            "cpu": used.cpu_seconds,
            "files": used.open_files,
            "memory": sample.session_memory,
            "gpus": gpus,
            "sent": {
                "link": c.sent_link.get(),
                "grpc": c.sent_grpc.get(),
                "collective": c.collectives.bytes(),
            },
            "received": {"link": c.received_link.get(), "grpc": c.received_grpc.get()},
            "waits": {
                "tensor": c.wait_tensor.get(),
                "ranks": c.collectives.ranks.get(),
                "queue": c.collectives.queue.get(),
            },
            "collectives": {
                "count": c.collectives.count.get(),
                "bytes": c.collectives.bytes(),
                "seconds": c.collectives.run_seconds.get(),
            },
            "ranks": c.ranks.get(),
            "epoch": c.epoch.get(),
            "recoveries": c.recoveries.get(),
            "peers": self.peers.all().iter().map(|(name, p)| peer(name, p)).collect::<Vec<_>>(),
            "recent": recent,
            "late": late,
            "scalars": self.scalars.lock().iter().map(|(name, (step, value))| {
                json!([name, step, value])
            }).collect::<Vec<_>>(),
        })
    }
}

fn step(record: &StepRecord) -> Value {
    let [input, compute, send, wait] = record.phases;
    json!([record.id, record.start, input, compute, send, wait])
}

fn peer(name: &str, counters: &PeerCounters) -> Value {
    let get = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    json!({
        "task": name,
        "sent": get(&counters.sent_bytes),
        "received": get(&counters.received_bytes),
        "values": get(&counters.sent_values) + get(&counters.received_values),
        "waited": get(&counters.waited_micros) as f64 / 1e6,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::StepEnd;
    use std::time::Duration;

    #[test]
    fn a_snapshot_stays_small_whatever_was_counted() {
        let metrics = TaskMetrics::new("worker", 0);
        let ms = Duration::from_millis(1);
        (0..10_000).for_each(|id| {
            metrics.part_ended(id, StepEnd::Ok, std::time::Instant::now() - ms, ms / 4, ms / 2)
        });
        (0..10_000).for_each(|rank| metrics.was_last(rank, ms));
        metrics.report_scalar("loss", 7, f64::NAN);
        let text = metrics.snapshot().to_string();
        assert!(text.len() < 4096, "{} bytes", text.len());
        let back: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back["parts"], 10_000);
        assert_eq!(back["recent"].as_array().unwrap().len(), STEPS);
        assert_eq!(back["late"].as_array().unwrap().len(), LATE);
        assert!(back["scalars"][0][2].is_null());
    }
}
