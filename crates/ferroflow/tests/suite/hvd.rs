//! Data-parallel training has the loss curve of one process with the whole batch. In deterministic
//! mode it equals, bit for bit, one process that computes the shards and sums them in the same
//! order.

use ferroflow::collective::{Algorithm, GroupOptions, Membership};
use ferroflow::hvd::{self, World};
use ferroflow::prelude::*;
use ferroflow::train::GradAndVar;
use ferroflow_testing::{child, this_test};
use std::net::TcpListener;
use std::sync::Mutex;

const SHARD: usize = 8;
const STEPS: usize = 12;

fn values(count: usize, seed: usize, scale: f32) -> Vec<f32> {
    (0..count)
        .map(|i| (((i * 7919 + seed * 104_729) % 1000) as f32 / 500.0 - 1.0) * scale)
        .collect()
}

fn variable(g: &Graph, name: &str, shape: &[usize], seed: usize) -> Variable {
    let count = shape.iter().product();
    g.variable(name, Tensor::from_slice(shape, &values(count, seed, 0.5)).unwrap())
}

/// The rows of the batch from `start` on: pictures of 8 by 8, and their labels.
fn batch(g: &Graph, start: usize, rows: usize) -> (Output, Output) {
    let all = values((start + rows) * 64, 1, 1.0);
    let x = Tensor::from_slice([rows, 8, 8, 1], &all[start * 64..]).unwrap();
    let labels: Vec<i64> = (start..start + rows).map(|i| (i * 31 + 6) as i64 % 10).collect();
    (g.constant(x), g.constant(Tensor::vector(&labels)))
}

struct Model {
    name: &'static str,
    variables: Vec<Variable>,
}

impl Model {
    fn new(g: &Graph, name: &'static str) -> Model {
        let shapes: &[(&str, &[usize])] = match name {
            "mlp" => &[("w1", &[64, 16]), ("b1", &[16]), ("w2", &[16, 10]), ("b2", &[10])],
            _ => &[("k", &[3, 3, 1, 4]), ("kb", &[4]), ("w", &[64, 10]), ("b", &[10])],
        };
        let make = |(i, (name, shape)): (usize, &(&str, &[usize]))| variable(g, name, shape, i + 2);
        Model { name, variables: shapes.iter().enumerate().map(make).collect() }
    }

    fn loss(&self, (x, labels): (Output, Output)) -> Output {
        let v = &self.variables;
        let h = match self.name {
            "mlp" => (x.reshape([None, Some(64)]).matmul(&v[0]) + &v[1]).relu(),
            _ => {
                let h = x.conv2d(&v[0], 1, Padding::Same).bias_add(&v[1]).relu();
                h.max_pool(2, 2, Padding::Same).reshape([None, Some(64)])
            }
        };
        losses::sparse_softmax_cross_entropy(&labels, &(h.matmul(&v[2]) + &v[3]))
    }
}

fn optimizer(name: &str) -> Box<dyn Optimizer> {
    match name {
        "mlp" => Box::new(Momentum::new(0.1, 0.9)),
        _ => Box::new(Adam::new(0.01)),
    }
}

/// The losses of all steps, and the final variables.
type Curve = (Vec<f32>, Vec<Tensor>);

fn run(g: &Graph, model: &Model, loss: &Output, train: &Operation) -> Curve {
    let init = g.global_initializer();
    let session = Session::local(g).unwrap();
    session.run(&init).unwrap();
    let step = |_| session.run((loss.scalar::<f32>(), train)).unwrap().0;
    let losses = (0..STEPS).map(step).collect();
    (losses, session.run(&model.variables).unwrap())
}

/// One process, the whole batch.
fn whole(name: &'static str, n: usize) -> Curve {
    let g = Graph::new();
    let model = Model::new(&g, name);
    let loss = model.loss(batch(&g, 0, n * SHARD));
    let train = optimizer(name).minimize(&loss);
    run(&g, &model, &loss, &train)
}

/// Sums pairs at doubling distances, in the order of the ranks.
fn summed(mut parts: Vec<Output>) -> Output {
    while parts.len() > 1 {
        parts = parts.chunks(2).map(|pair| &pair[0] + &pair[1]).collect();
    }
    parts.remove(0)
}

/// One process that computes shard by shard.
fn shards(name: &'static str, n: usize) -> Curve {
    let g = Graph::new();
    let model = Model::new(&g, name);
    let optimizer = optimizer(name);
    let losses: Vec<Output> = (0..n).map(|r| model.loss(batch(&g, r * SHARD, SHARD))).collect();
    let towers: Vec<Vec<GradAndVar>> =
        losses.iter().map(|l| optimizer.compute_gradients(l, &model.variables)).collect();
    let mean = |i: usize| {
        let parts = towers.iter().map(|t| t[i].0.as_ref().unwrap().dense()).collect();
        (Some(Gradient::Dense(summed(parts) / n as f32)), model.variables[i].clone())
    };
    let means: Vec<GradAndVar> = (0..model.variables.len()).map(mean).collect();
    let train = optimizer.apply_gradients(&g, &means, None);
    let loss = summed(losses) / n as f32;
    run(&g, &model, &loss, &train)
}

fn rank_of(world: &World, name: &'static str) -> Curve {
    let g = world.graph();
    let model = Model::new(&g, name);
    let own = model.loss(batch(&g, world.rank() * SHARD, SHARD));
    let train = world.optimizer(optimizer(name)).minimize(&own);
    let loss = g.op("HorovodAllreduce").input(&own).attr("tensor_name", "loss").output();
    run(&g, &model, &loss, &train)
}

/// A process for each shard; here, a thread.
fn ranks(name: &'static str, n: usize, deterministic: bool) -> Vec<Curve> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let listener = Mutex::new(Some(listener));
    std::thread::scope(|scope| {
        let (address, listener) = (&address, &listener);
        let rank = |rank: usize| {
            scope.spawn(move || {
                let algorithm = deterministic.then_some(Algorithm::Doubling);
                let config = hvd::Config {
                    membership: Some(Membership::new(rank, n, address.clone())),
                    listener: if rank == 0 { listener.lock().unwrap().take() } else { None },
                    group: GroupOptions { algorithm, ..GroupOptions::default() },
                    deterministic,
                    ..hvd::Config::default()
                };
                rank_of(&hvd::init_with(config).unwrap(), name)
            })
        };
        let ranks: Vec<_> = (0..n).map(rank).collect();
        ranks.into_iter().map(|r| r.join().unwrap()).collect()
    })
}

#[test]
fn losses_equal_those_of_one_process_with_the_whole_batch() {
    for (name, n) in [("mlp", 2), ("mlp", 4), ("cnn", 2), ("cnn", 4)] {
        let expected = whole(name, n);
        for (losses, _) in ranks(name, n, false) {
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-4 * b.abs().max(1e-2);
            assert!(
                losses.iter().zip(&expected.0).all(near),
                "{name} {n}: {losses:?} {expected:?}"
            );
        }
        assert!(expected.0[STEPS - 1] < expected.0[0]);
    }
}

#[test]
fn deterministic_mode_gives_equal_bits() {
    for (name, n) in [("mlp", 2), ("mlp", 4), ("cnn", 2), ("cnn", 4)] {
        let expected = shards(name, n);
        for curve in ranks(name, n, true) {
            assert_eq!(curve, expected, "{name} {n}");
        }
    }
}

#[test]
fn processes_of_a_launcher_train_together() {
    if child::role().is_some() {
        let (losses, _) = rank_of(&hvd::init().unwrap(), "mlp");
        return println!("\nlosses {losses:?}");
    }
    let n = 2;
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let start = |rank: usize| {
        child::command(this_test!(), "rank")
            .env("FERROFLOW_RANK", rank.to_string())
            .env("FERROFLOW_SIZE", n.to_string())
            .env("FERROFLOW_ADDRESS", format!("127.0.0.1:{port}"))
            .env("FERROFLOW_DETERMINISTIC", "1")
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..n).map(start).collect();
    let expected = format!("losses {:?}", shards("mlp", n).0);
    for child in children {
        let out = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && text.contains(&expected), "{text}\nnot {expected}");
    }
}
