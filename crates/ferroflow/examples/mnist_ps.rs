//! Asynchronous between-graph replication: a parameter server and two workers learn digits. Each
//! worker builds its own graph, and they share variables by name.
//!
//!     cargo run --release --example mnist_ps

use ferroflow::cluster::{BackgroundServer, ServerOptions, loopback_spec};
use ferroflow::prelude::*;

const WORKERS: usize = 2;
const STEPS: i64 = 300;

/// Synthetic digits: seven segments on 7 by 5 pixels, with noise.
fn digits(n: usize, seed: u64) -> Result<(Tensor, Tensor)> {
    const SEGMENTS: [u8; 10] = [0x77, 0x24, 0x5d, 0x6d, 0x2e, 0x6b, 0x7b, 0x25, 0x7f, 0x6f];
    let on = |digit: usize, row: usize, column: usize| {
        let segment = match (row, column) {
            (0, 1..=3) => 0,
            (1..=2, 0) => 1,
            (1..=2, 4) => 2,
            (3, 1..=3) => 3,
            (4..=5, 0) => 4,
            (4..=5, 4) => 5,
            (6, 1..=3) => 6,
            _ => return false,
        };
        SEGMENTS[digit] >> segment & 1 == 1
    };
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut pixels, mut labels) = (Vec::with_capacity(n * 35), Vec::with_capacity(n));
    for _ in 0..n {
        let digit = random.usize(..10);
        labels.push(digit as i64);
        for (row, column) in (0..35).map(|i| (i / 5, i % 5)) {
            pixels.push(f32::from(u8::from(on(digit, row, column))) + random.f32() - 0.5);
        }
    }
    Ok((Tensor::from_slice([n, 35], &pixels)?, Tensor::vector(&labels)))
}

/// The program of worker `task`.
fn work(task: usize, server: BackgroundServer) -> Result<f32> {
    let g = Graph::new();
    g.set_seed(1);
    let device = format!("/job:worker/task:{task}");
    // Variables go to the parameter server, everything else to this worker.
    let (x, y, loss, accuracy, train) =
        g.device(ReplicaDeviceSetter::new(1).worker(&device), || {
            let x = g.placeholder::<f32>("x", [None, Some(35)]);
            let y = g.placeholder::<i64>("y", [None]);
            let hidden = layers::Dense::new("hidden", 32).activation(Output::relu).apply(&x);
            let logits = layers::Dense::new("logits", 10).apply(&hidden);
            let loss = losses::sparse_softmax_cross_entropy(&y, &logits);
            let accuracy = losses::accuracy(&y, &logits);
            let train = Adam::new(0.01).minimize_counted(&loss, &g.global_step());
            (x, y, loss, accuracy, train)
        });
    // The first worker is the chief and initializes the variables; the others wait for it.
    let open = move |g: &Graph| server.session(g, &["/job:ps", &device]);
    let training = MonitoredTraining::new(&g, &train).chief(task == 0);
    let mut session = training.hook(hooks::StopAtStep(STEPS)).open(open)?;
    let mut local_steps = 0;
    while !session.should_stop() {
        let (xs, ys) = digits(32, (session.global_step() as u64) << 8 | task as u64)?;
        let loss = session.train_fed([(&x, xs), (&y, ys)], loss.scalar::<f32>())?;
        local_steps += 1;
        if local_steps % 50 == 0 {
            let step = session.global_step();
            println!("worker {task}: local step {local_steps}, global step {step}, loss {loss:.4}");
        }
    }
    let (xs, ys) = digits(500, u64::MAX)?;
    let fed = [(&x, xs), (&y, ys)];
    session.session()?.run_fed(fed, accuracy.scalar::<f32>())
}

pub fn main() -> Result<()> {
    // All tasks are in this process here; `ferroflow run` starts them on the hosts of a cluster.
    let spec = loopback_spec(&[("ps", 1), ("worker", WORKERS)])?;
    let start =
        |job: &str, task| BackgroundServer::start(ServerOptions::new(spec.clone(), job, task));
    let _ps = start("ps", 0)?;
    let mut threads = Vec::new();
    for task in 0..WORKERS {
        let server = start("worker", task as u32)?;
        threads.push(std::thread::spawn(move || work(task, server)));
    }
    for (task, thread) in threads.into_iter().enumerate() {
        let accuracy =
            thread.join().map_err(|_| Error::new(Code::Internal, "a worker panicked"))??;
        println!("worker {task}: test accuracy {accuracy:.3}");
        assert!(accuracy > 0.9);
    }
    Ok(())
}
