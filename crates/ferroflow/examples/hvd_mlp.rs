//! A multi-layer perceptron trained by all-reduce: each process has its own data, and all have the
//! same variables.
//!
//!     cargo build --release --example hvd_mlp
//!     ferroflow run -np 4 -- target/release/examples/hvd_mlp
//!
//! Also runs under mpirun, srun or torchrun, or alone. `FERROFLOW_TIMELINE=trace.json` writes a
//! trace of the reductions.

use ferroflow::hvd;
use ferroflow::prelude::*;

const BATCH: usize = 32;
const STEPS: i64 = 200;

/// Points of two spirals, and the number of the spiral of each.
fn spiral(from: usize, rows: usize) -> (Vec<f32>, Vec<i64>) {
    let mut points = Vec::new();
    let mut labels = Vec::new();
    for i in from..from + rows {
        let (arm, along) = (i % 2, (i * 37 % 101) as f32 / 101.0);
        let angle = along * 4.0 + arm as f32 * std::f32::consts::PI;
        points.extend([along * angle.cos(), along * angle.sin()]);
        labels.push(arm as i64);
    }
    (points, labels)
}

pub fn main() -> Result<()> {
    let hvd = hvd::init()?;
    let g = hvd.graph();
    g.set_seed(1 + hvd.rank() as i64); // a seed for each rank: the broadcast makes the variables equal
    let x = g.placeholder::<f32>("x", [None, Some(2)]);
    let y = g.placeholder::<i64>("y", [None]);
    let hidden = layers::Dense::new("hidden", 32).apply(&x).tanh();
    let hidden = layers::Dense::new("hidden2", 32).apply(&hidden).tanh();
    let logits = layers::Dense::new("logits", 2).apply(&hidden);
    let loss = losses::sparse_softmax_cross_entropy(&y, &logits);

    let step = g.global_step();
    let rate = hvd.warmed_up_rate(0.01, &step, 20.0);
    let train = hvd.optimizer(Adam::new(rate)).minimize_counted(&loss, &step);
    let mean_loss = hvd.all_reduce(&loss, hvd::Reduction::Average);

    let mut session = hvd.training(&g, &train).open(Session::local)?;
    let mut last = f32::INFINITY;
    while session.global_step() < STEPS {
        // Each process uses its own part of the points.
        let at = session.global_step() as usize * hvd.size() + hvd.rank();
        let (points, labels) = spiral(at * BATCH, BATCH);
        let feeds = [
            (x.name(), Tensor::from_slice([BATCH, 2], &points)?),
            (y.name(), Tensor::vector(&labels)),
        ];
        last = session.train_fed(feeds.as_slice(), mean_loss.scalar::<f32>())?;
        if hvd.is_first() && session.global_step() % 50 == 0 {
            println!("step {}  loss {last:.4}  ({} ranks)", session.global_step(), hvd.size());
        }
    }
    session.close()?;
    assert!(last < 0.1, "{last}");
    Ok(())
}
