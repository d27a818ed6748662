//! In-graph replication: one client, one graph, and two towers on different devices that share
//! their variables. Their gradients are averaged and applied once.
//!
//!     cargo run --release --example in_graph_towers

use ferroflow::prelude::*;
use ferroflow::train::GradAndVar;

pub fn main() -> Result<()> {
    let g = Graph::new();
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
            // The second tower reuses the variables that the first has made.
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

    // Two CPU devices; without soft placement, a device that is missing is an error.
    let options =
        LocalOptions { cpu_devices: 2, allow_soft_placement: false, ..LocalOptions::default() };
    let session = Session::local_with(&g, &options)?;
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

    // The trace of one more step says which device ran each node.
    let trace = StepOptions { trace: true, ..StepOptions::default() };
    let (_, metadata) = session.run_with(feeds.as_slice(), &train, trace)?;
    let nodes = metadata.nodes()?;
    for device in ["CPU:0", "CPU:1"] {
        let products = nodes.iter().filter(|n| n.label.contains("MatMul("));
        let here = products.filter(|n| n.device.ends_with(device)).count();
        println!("{device}: {here} matrix products");
        assert!(here > 0, "no matrix product ran on {device}: {nodes:?}");
    }
    Ok(())
}
