//! A Supervisor: the program runs its own steps while a thread saves checkpoints and writes
//! summaries. A second run restores the last checkpoint and continues.
//!
//!     cargo run --release --example supervisor

use ferroflow::checkpoint::latest_checkpoint;
use ferroflow::prelude::*;
use std::path::Path;
use std::time::Duration;

const STEPS: i64 = 50;

/// Trains until the global step is `until`; returns the step it began at.
fn train(dir: &Path, until: i64) -> Result<i64> {
    let g = Graph::new();
    let w = g.variable("w", 0.0);
    let loss = (&w - 3.0).square();
    let step = g.global_step();
    let train = Sgd::new(0.1).minimize_counted(&loss, &step);
    summary::scalar("loss", &loss);
    let summaries = summary::merge_all(&g).unwrap_or_else(|| g.constant(""));
    let supervisor = Supervisor::new(&g)
        .dir(dir)
        .save_every(Duration::from_secs(60))
        .summary_every(&summaries, Duration::from_secs(1));
    let supervised = supervisor.open(Session::local)?;
    let begin = supervised.session().run(step.scalar::<i64>())?;
    let mut now = begin;
    while now < until && !supervised.should_stop() {
        (now, _) = supervised.session().run((step.scalar::<i64>(), &train))?;
    }
    let checkpoint = supervised.stop()?;
    println!("steps {begin} to {now}, saved to {checkpoint:?}");
    Ok(begin)
}

pub fn main() -> Result<()> {
    let dir = std::env::temp_dir().join(format!("ferroflow-supervisor-{}", std::process::id()));
    assert_eq!(train(&dir, STEPS)?, 0);
    assert!(latest_checkpoint(&dir).is_some());
    assert!(train(&dir, 2 * STEPS)? >= STEPS, "the second run must continue the first");
    let _ = std::fs::remove_dir_all(&dir);
    Ok(())
}
