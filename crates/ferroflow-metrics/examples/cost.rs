//! Measures what metrics cost: the calls of a step on one task, of a part of a step, and of an
//! all-reduce, in nanoseconds. The best of several rounds counts, because other load only adds.
//!
//!     cargo run --release -p ferroflow-metrics --example cost

use ferroflow_metrics::{StepEnd, TaskMetrics};
use std::time::{Duration, Instant};

const ROUNDS: usize = 50;
const CALLS: u32 = 10_000;

fn best(mut call: impl FnMut(i64)) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        (0..CALLS).for_each(|n| call(i64::from(n)));
        best = best.min(begun.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS));
    }
    best
}

fn main() {
    let metrics = TaskMetrics::new("worker", 0);
    let session = metrics.open_session();
    let step = best(|_| {
        let call = metrics.begin_rpc("RunStep");
        let timer = session.begin_step();
        timer.end(StepEnd::Ok);
        metrics.end_rpc(&call, 0, 100, 100);
    });
    let time = Duration::from_micros(100);
    let task = "/job:ps/replica:0/task:0";
    let (peer, started) = (metrics.peer(task), Instant::now());
    let part = best(|id| {
        metrics.sent_value(task, 4);
        metrics.received_value(&peer, 4);
        metrics.waited_for(&peer, time);
        metrics.part_ended(id, StepEnd::Ok, started, time / 4, time / 4);
    });
    let reduced = best(|id| {
        metrics.collectives().ran("allreduce", 4, time, time, time);
        metrics.rank_step(id, time, time / 4, time / 4);
    });
    println!("{{\"step_ns\":{step:.0},\"part_ns\":{part:.0},\"all_reduce_ns\":{reduced:.0}}}");
}
