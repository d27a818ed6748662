//! All-reduce of tensors in the memory of GPUs, by each way that this machine has. Run it in all
//! ranks of a job.

use ferroflow::hvd::{self, Reduction, World};
use ferroflow::prelude::*;
use ferroflow_core::Gpu;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Instant;

/// Steps that are measured.
const STEPS: u32 = 10;

/// The time of an all-reduce of `megabytes` through host memory and by the GPUs' own way, and
/// whether both give the same bits.
pub fn measure(gpu: &Arc<dyn Gpu>, megabytes: usize) -> Result<Json> {
    let world = hvd::init()?;
    let n = megabytes * 250_000;
    let (host_ms, host) = reduced(&world, gpu, n)?;
    let path = world.use_gpu(gpu)?;
    let (device_ms, device) = reduced(&world, gpu, n)?;
    let equal = host.bytes()? == device.bytes()?;
    Ok(json!({"kind": "ranks", "rank": world.rank(), "size": world.size(), "mb": megabytes,
        "path": format!("{path:?}"), "host_ms": host_ms, "device_ms": device_ms,
        "ratio": host_ms / device_ms, "bit_equal": equal}))
}

/// Milliseconds of an all-reduce of `n` floats, and its first values.
fn reduced(world: &World, gpu: &Arc<dyn Gpu>, n: usize) -> Result<(f64, Tensor)> {
    let g = world.graph();
    let (sum, head, init) = g.device("/gpu:0", || {
        let values: Vec<f32> =
            (0..1000).map(|i| (i * 7919 % 1009) as f32 * 0.37 + world.rank() as f32).collect();
        let block = g.constant(Tensor::vector(&values));
        let x = g.variable("all", init::zeros([n / 1000, 1000]));
        let filled = x.assign(&block + &x.read());
        let sum = world.all_reduce(&x.read(), Reduction::Sum);
        let head = sum.slice(&[0, 0], &[16.min(n as i32 / 1000), -1]);
        (sum.operation(), head, filled)
    });
    let start = g.global_initializer();
    let options = LocalOptions { gpus: vec![gpu.clone()], ..LocalOptions::default() };
    let session = Session::local_with(&g, &options)?;
    session.run(&start)?;
    session.run(&init)?;
    let values = session.run(&head)?;
    session.run(&sum)?;
    gpu.synchronize()?;
    let began = Instant::now();
    for _ in 0..STEPS {
        session.run(&sum)?;
    }
    gpu.synchronize()?;
    Ok((began.elapsed().as_secs_f64() * 1e3 / f64::from(STEPS), values))
}

/// Steps a second of the mlp by one rank, without and with an all-reduce of its gradients.
pub fn cost_of_one_rank(gpu: &Arc<dyn Gpu>) -> Result<Json> {
    let world = hvd::init()?;
    let path = world.use_gpu(gpu)?;
    let rate = |reduces: bool| -> Result<f64> {
        let g = world.graph();
        let train = g.device("/gpu:0", || {
            let x = g.constant(Tensor::from_slice([128, 784], &vec![0.5f32; 128 * 784])?);
            let y = layers::Dense::new("a", 512).activation(Output::relu).apply(&x);
            let y = layers::Dense::new("b", 512).activation(Output::relu).apply(&y);
            let loss = layers::Dense::new("c", 10).apply(&y).square().mean(&[0, 1]);
            Ok::<_, Error>(match reduces {
                true => world.optimizer(Sgd::new(0.1)).minimize(&loss),
                false => Sgd::new(0.1).minimize(&loss),
            })
        })?;
        let init = g.global_initializer();
        let options = LocalOptions { gpus: vec![gpu.clone()], ..LocalOptions::default() };
        let session = Session::local_with(&g, &options)?;
        session.run(&init)?;
        for _ in 0..50 {
            session.run(&train)?;
        }
        gpu.synchronize()?;
        let began = Instant::now();
        for _ in 0..500 {
            session.run(&train)?;
        }
        gpu.synchronize()?;
        Ok(500.0 / began.elapsed().as_secs_f64())
    };
    let (plain, reduced) = (rate(false)?, rate(true)?);
    Ok(json!({"kind": "one rank", "path": format!("{path:?}"), "plain_steps_s": plain,
        "reduced_steps_s": reduced, "ratio": reduced / plain}))
}
