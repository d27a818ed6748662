//! Measures weak scaling: steps per second of data-parallel training with a fixed batch per rank.
//!
//!     cargo build --release --example weak_scaling
//!     python bench/weak_scaling.py --program target/release/examples/weak_scaling
//!
//! Usage: `weak_scaling mlp|cnn [SECONDS]`, alone or under a launcher. Rank 0 prints a line of
//! JSON.

use ferroflow::hvd;
use ferroflow::prelude::*;
use std::time::{Duration, Instant};

const BATCH: usize = 128;
const WARM_UP: usize = 5;

fn loss_of(model: &str, x: &Output, labels: &Output) -> Output {
    let hidden = match model {
        "cnn" => {
            let h = layers::Conv2d::new("conv1", 16, 3)
                .apply(&x.reshape([None, Some(28), Some(28), Some(1)]))
                .relu();
            let h = layers::Conv2d::new("conv2", 32, 3).apply(&h.max_pool(2, 2, Padding::Same));
            h.relu().max_pool(2, 2, Padding::Same).reshape([None, Some(7 * 7 * 32)])
        }
        _ => {
            let h = layers::Dense::new("hidden1", 512).apply(x).relu();
            layers::Dense::new("hidden2", 512).apply(&h).relu()
        }
    };
    losses::sparse_softmax_cross_entropy(labels, &layers::Dense::new("logits", 10).apply(&hidden))
}

pub fn main() -> Result<()> {
    let model = std::env::args().nth(1).filter(|m| m == "cnn").unwrap_or_else(|| "mlp".into());
    let seconds = std::env::args().nth(2).and_then(|s| s.parse().ok()).unwrap_or(5.0);
    let hvd = hvd::init()?;
    let g = hvd.graph();
    g.set_seed(1);
    let values: Vec<f32> = (0..BATCH * 784)
        .map(|i| ((i * 7919 + hvd.rank() * 104_729) % 1000) as f32 / 1000.0)
        .collect();
    let labels: Vec<i64> = (0..BATCH).map(|i| (i * 31 + hvd.rank()) as i64 % 10).collect();
    let x = g.constant(Tensor::from_slice([BATCH, 784], &values)?);
    let loss = loss_of(&model, &x, &g.constant(Tensor::vector(&labels)));
    let train = hvd.optimizer(Sgd::new(hvd.scaled_rate(0.01))).minimize(&loss);
    let (init, same) = (g.global_initializer(), hvd.broadcast_variables(&g, 0));
    let session = Session::local(&g)?;
    session.run(&init)?;
    session.run(&same)?;
    let mut times = Vec::new();
    let start = Instant::now();
    loop {
        let before = Instant::now();
        session.run(&train)?;
        times.push(before.elapsed().as_secs_f64());
        // All ranks stop at the same step, when the time of any has passed.
        let over = start.elapsed() >= Duration::from_secs_f64(seconds) && times.len() > WARM_UP + 4;
        let over = Tensor::scalar(u8::from(over));
        let over = hvd.all_reduce_value("over", over, hvd::Reduction::Max)?;
        if over.scalar_value::<u8>()? == 1 {
            break;
        }
    }
    if hvd.is_first() {
        let steps = &mut times[WARM_UP..];
        steps.sort_by(f64::total_cmp);
        let (n, step) = (hvd.size(), steps[steps.len() / 2]);
        println!(r#"{{"model": "{model}", "n": {n}, "step_ms": {}}}"#, step * 1e3);
    }
    Ok(())
}
