//! Model parallelism: one graph whose layers are on two tasks of a cluster. The servers send
//! activations and gradients between the tasks.
//!
//!     cargo run --release --example model_parallel

use ferroflow::cluster::{BackgroundServer, ServerOptions, loopback_spec};
use ferroflow::prelude::*;

/// Two tasks of job `worker` in this process; on a real cluster each has its own machine.
fn cluster() -> Result<Vec<BackgroundServer>> {
    let spec = loopback_spec(&[("worker", 2)])?;
    let start = |task| BackgroundServer::start(ServerOptions::new(spec.clone(), "worker", task));
    Ok(vec![start(0)?, start(1)?])
}

pub fn main() -> Result<()> {
    let servers = cluster()?;
    let g = Graph::new();
    g.set_seed(3);
    let x = g.placeholder::<f32>("x", [None, Some(2)]);
    let y = g.placeholder::<f32>("y", [None, Some(1)]);
    // The first layer on task 0, the second on task 1, with their variables and updates.
    let hidden = g.device("/job:worker/task:0", || {
        layers::Dense::new("first", 16).activation(Output::tanh).apply(&x)
    });
    let (loss, train) = g.device("/job:worker/task:1", || {
        let output = layers::Dense::new("second", 1).apply(&hidden);
        let loss = losses::sigmoid_cross_entropy(&y, &output);
        let train = Adam::new(0.05).minimize(&loss);
        (loss, train)
    });
    for v in g.trainable_variables() {
        println!("{:16} on {}", v.variable_name(), v.device());
    }
    let init = g.global_initializer();
    let session = servers[0].session(&g, &[])?;
    session.run(&init)?;
    // Exclusive or, which one layer cannot learn.
    let xs = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]];
    let ys = [[0.0], [1.0], [1.0], [0.0]];
    let feeds = || (xs.into_tensor(), ys.into_tensor());
    for step in 0..=200 {
        let (xs, ys) = feeds();
        let fed = [(&x, xs?), (&y, ys?)];
        let (loss, ()) = session.run_fed(fed, (loss.scalar::<f32>(), &train))?;
        if step % 100 == 0 {
            println!("step {step:3}  loss {loss:.4}");
        }
    }
    let (xs, ys) = feeds();
    let last = session.run_fed([(&x, xs?), (&y, ys?)], loss.scalar::<f32>())?;
    assert!(last < 0.1, "{last}");
    session.close()
}
