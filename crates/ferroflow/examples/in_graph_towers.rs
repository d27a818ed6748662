//! In-graph replication: one client, one graph, two towers that share their variables; their
//! gradients are averaged and applied once.
//!
//!     cargo run --release --example in_graph_towers

use ferroflow::prelude::*;
use ferroflow::train::GradAndVar;

pub fn main() -> Result<()> {
    let g = graph();
    g.set_seed(1);
    let x = g.placeholder::<f32>("x", [8, 2]);
    let y = g.placeholder::<f32>("y", [8, 1]);
    let (xs, ys) = (x.split(2, 0), y.split(2, 0));
    let optimizer = Sgd::new(0.1);

    let mut towers: Vec<Vec<GradAndVar>> = Vec::new();
    let mut tower_losses = Vec::new();
    for tower in 0..2 {
        // On a cluster: /job:worker/task:0 and /job:worker/task:1.
        g.device(format!("/cpu:{tower}").as_str(), || {
            // The second tower finds the variables that the first has made.
            let reuse = if tower == 0 { Reuse::No } else { Reuse::Yes };
            g.variable_scope("model", reuse, || {
                let prediction = layers::Dense::new("dense", 1).apply(&xs[tower]);
                let loss = losses::mean_squared_error(&ys[tower], &prediction);
                towers.push(optimizer.compute_gradients(&loss, &g.trainable_variables()));
                tower_losses.push(loss);
            });
        });
    }
    let train = optimizer.apply_gradients(&g, &average_gradients(&towers), None);
    let loss = g.add_n(&tower_losses) * 0.5;
    let init = g.global_initializer();

    let session = local_session(&g)?;
    session.run(&init)?;
    let inputs: Vec<f32> = (0..16).map(|i| ((i * 7) % 16) as f32 / 8.0 - 1.0).collect();
    let outputs: Vec<f32> = inputs.chunks(2).map(|p| 3.0 * p[0] - p[1] + 0.5).collect();
    let feeds = [
        (x.name(), Tensor::from_slice([8, 2], &inputs)?),
        (y.name(), Tensor::from_slice([8, 1], &outputs)?),
    ];
    let mut last = f32::INFINITY;
    for step in 1..=300 {
        last = session.run_fed(feeds.as_slice(), (loss.scalar::<f32>(), &train))?.0;
        if step % 100 == 0 {
            println!("step {step}  loss {last:.6}");
        }
    }
    assert!(last < 0.01, "{last}");
    Ok(())
}
