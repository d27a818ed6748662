//! Synchronous training: two workers compute gradients on different data, a parameter server holds
//! the variables, and each update applies the mean of both workers' gradients.
//!
//!     cargo run --release --example sync_replicas

use ferroflow::cluster::{BackgroundServer, ServerOptions, loopback_spec};
use ferroflow::prelude::*;

const WORKERS: usize = 2;
const STEPS: i64 = 100;

/// The program of one worker.
fn work(task: usize, server: BackgroundServer) -> Result<(f32, f32)> {
    let g = Graph::new();
    let device = format!("/job:worker/task:{task}");
    let setter = ReplicaDeviceSetter::new(1).worker(&device);
    let (x, y, w, b, sync) = g.device(setter, || {
        let x = g.placeholder::<f32>("x", [None]);
        let y = g.placeholder::<f32>("y", [None]);
        let (w, b) = (g.variable("w", 0.0), g.variable("b", 0.0));
        let loss = losses::mean_squared_error(&y, &(&x * &w + &b));
        // Two gradients make an update, and there are two replicas: no replica is a backup.
        let optimizer = SyncReplicas::new(Sgd::new(0.2), WORKERS, WORKERS);
        let sync = optimizer.minimize(&loss, &g.global_step());
        (x, y, w, b, sync)
    });
    let open = move |g: &Graph| server.session(g, &["/job:ps", &device]);
    let training = MonitoredTraining::synchronous(&g, &sync).chief(task == 0);
    let mut session = training.hook(hooks::StopAtStep(STEPS)).open(open)?;
    // Each worker has one half of the line.
    let side = if task == 0 { -1.0 } else { 1.0 };
    let xs: Vec<f32> = (1..=32).map(|i| side * i as f32 / 32.0).collect();
    let ys: Vec<f32> = xs.iter().map(|x| 2.0 * x + 10.0).collect();
    let mut found = (0.0, 0.0);
    while !session.should_stop() {
        let feeds = [(&x, xs.clone()), (&y, ys.clone())];
        found = session.train_fed(feeds, (w.scalar::<f32>(), b.scalar::<f32>()))?;
    }
    session.close()?;
    Ok(found)
}

pub fn main() -> Result<()> {
    // All tasks are in this process here; `ferroflow run` starts them on the hosts of a cluster.
    let spec = loopback_spec(&[("ps", 1), ("worker", WORKERS)])?;
    let start = |job: &str, task: usize| {
        BackgroundServer::start(ServerOptions::new(spec.clone(), job, task as u32))
    };
    let _ps = start("ps", 0)?;
    let mut workers = Vec::new();
    for task in 0..WORKERS {
        let server = start("worker", task)?;
        workers.push(std::thread::spawn(move || work(task, server)));
    }
    for (task, worker) in workers.into_iter().enumerate() {
        let found =
            worker.join().map_err(|_| Error::new(Code::Internal, "a worker panicked"))??;
        let (w, b) = found;
        println!("worker {task}: w {w:.3}  b {b:.3}");
        assert!((w - 2.0).abs() < 0.1 && (b - 10.0).abs() < 0.1, "{found:?}");
    }
    Ok(())
}
