//! Steps that are recorded and replayed on a simulated GPU have the results of steps that run node
//! by node.

use ferroflow::prelude::*;
use ferroflow_core::Gpu;
use ferroflow_oracle::models::{MODELS, TrainedModel};
use ferroflow_oracle::null_gpu::NullGpu;
use ferroflow_simulated_gpu::{SimulatedGpu, SimulatedGpuOptions};
use std::sync::Arc;

fn simulated(options: SimulatedGpuOptions) -> (Arc<SimulatedGpu>, LocalOptions) {
    let gpu = SimulatedGpu::new(0, options);
    let gpus: Vec<Arc<dyn Gpu>> = vec![gpu.clone()];
    (gpu, LocalOptions { gpus, ..LocalOptions::default() })
}

/// A variable that a fed row is added to in every step, and a value of both.
struct Sums {
    graph: Graph,
    row: Output,
    seen: Output,
    update: Operation,
    total: Output,
}

fn sums() -> Sums {
    let graph = Graph::new();
    let g = &graph;
    let (row, seen, update, total) = g.device("/gpu:0", || {
        let row = g.placeholder::<f32>("row", [None]);
        let total = g.variable("total", ferroflow::train::init::zeros([4]));
        let seen = (&*total + &row).square() + 1.0;
        let update = g.control_dependencies(&[seen.operation()], || total.assign_add(&row));
        (row, seen, update, (*total).clone())
    });
    Sums { graph, row, seen, update, total }
}

fn step(sums: &Sums, session: &Session, row: [f32; 4]) -> Result<Vec<f32>> {
    let fed = Tensor::vector(&row);
    let (seen, ()) = session.run_fed((&sums.row, fed), (&sums.seen, &sums.update))?;
    Ok(seen.as_slice::<f32>()?.to_vec())
}

#[test]
fn a_replayed_step_takes_new_feeds_and_updates_variables() {
    let (gpu, options) = simulated(SimulatedGpuOptions::default());
    let sums = sums();
    let session = Session::local_with(&sums.graph, &options).expect("a session");
    session.run(&sums.graph.global_initializer()).expect("initial values");
    let mut total = [0f32; 4];
    for i in 0..10 {
        let row = [1.0, i as f32, 0.5 * i as f32, -1.0];
        let want: Vec<f32> = total.iter().zip(&row).map(|(t, r)| (t + r) * (t + r) + 1.0).collect();
        assert_eq!(step(&sums, &session, row).expect("a step"), want, "step {i}");
        total.iter_mut().zip(&row).for_each(|(t, r)| *t += r);
    }
    assert!(gpu.replays() >= 5, "{} steps were replayed", gpu.replays());
    let last: Tensor = session.run(&sums.total).expect("the variable");
    assert_eq!(last.as_slice::<f32>().expect("floats"), total);
}

#[test]
fn a_model_trains_with_the_same_bits_when_steps_are_replayed() {
    let model = TrainedModel::with_batch("mlp", "/gpu:0", Some(8)).expect("a model");
    let losses = |records_steps: bool| {
        let (gpu, options) =
            simulated(SimulatedGpuOptions { records_steps, ..SimulatedGpuOptions::default() });
        let session = model.session(&options.gpus).expect("a session");
        let losses = model.losses(&session, 8).expect("steps");
        (gpu.replays(), losses)
    };
    let (replayed, got) = losses(true);
    let (plain, want) = losses(false);
    assert_eq!(got, want);
    assert!(replayed >= 5 && plain == 0, "{replayed} and {plain} steps were replayed");
}

#[test]
fn a_step_that_is_recorded_again_after_its_variable_moved_goes_on() {
    let (gpu, options) = simulated(SimulatedGpuOptions::default());
    let sums = sums();
    let session = Session::local_with(&sums.graph, &options).expect("a session");
    let init = sums.graph.global_initializer();
    session.run(&init).expect("initial values");
    for _ in 0..6 {
        step(&sums, &session, [1.0; 4]).expect("a step");
    }
    let before = gpu.replays();
    assert!(before > 0);
    // The initial value is in other memory than the last one.
    session.run(&init).expect("initial values again");
    for i in 0..8 {
        let n = (i + 1) as f32;
        assert_eq!(step(&sums, &session, [1.0; 4]).expect("a step"), [n * n + 1.0; 4], "step {i}");
    }
    assert!(gpu.replays() > before, "it was not recorded again");
}

#[test]
fn a_step_with_other_shapes_runs_node_by_node() {
    let (gpu, options) = simulated(SimulatedGpuOptions::default());
    let graph = Graph::new();
    let g = &graph;
    let (x, y) = g.device("/gpu:0", || {
        let x = g.placeholder::<f32>("x", [None]);
        let y = (x.square() + 1.0).sum(&[0]);
        (x, y)
    });
    let session = Session::local_with(&graph, &options).expect("a session");
    for i in 0..12 {
        let n = 1 + i % 2;
        let fed = Tensor::vector(&vec![2.0f32; n]);
        let got: f32 = session.run_fed((&x, fed), y.scalar::<f32>()).expect("a step");
        assert_eq!(got, 5.0 * n as f32, "step {i}");
    }
    assert!(gpu.replays() >= 4, "{} steps were replayed", gpu.replays());
}

#[test]
fn a_lost_device_fails_the_steps_that_replay_on_it() {
    let (_, options) =
        simulated(SimulatedGpuOptions { lost_at_launch: Some(25), ..Default::default() });
    let sums = sums();
    let session = Session::local_with(&sums.graph, &options).expect("a session");
    session.run(&sums.graph.global_initializer()).expect("initial values");
    let outcome = (0..40).try_for_each(|_| step(&sums, &session, [1.0; 4]).map(|_| ()));
    let e = outcome.expect_err("the device is lost");
    assert_eq!(e.code(), ferroflow_core::Code::Unavailable, "{e}");
    assert!(step(&sums, &session, [1.0; 4]).is_err());
}

#[test]
fn recorded_steps_give_their_memory_up_when_it_runs_out() {
    let (gpu, options) =
        simulated(SimulatedGpuOptions { memory_limit: 1 << 20, ..Default::default() });
    let graph = Graph::new();
    let g = &graph;
    let (x, small, large) = g.device("/gpu:0", || {
        let x = g.placeholder::<f32>("x", [None]);
        let n = g.constant([128, 1]);
        // Half of the memory, and nearly all of it.
        let small = x.expand_dims(0).tile(n).max(&[0, 1]);
        let large = x.sum(&[0]);
        (x, small, large)
    });
    let session = Session::local_with(&graph, &options).expect("a session");
    for _ in 0..6 {
        let fed = Tensor::vector(&[1.0f32; 1000]);
        let got: f32 = session.run_fed((&x, fed), small.scalar::<f32>()).expect("a step");
        assert_eq!(got, 1.0);
    }
    assert!(gpu.replays() > 0);
    let fed = Tensor::vector(&vec![1.0f32; 200_000]);
    let got: f32 = session.run_fed((&x, fed), large.scalar::<f32>()).expect("a step");
    assert_eq!(got, 200_000.0);
}

#[test]
fn recorded_steps_take_little_more_memory_than_their_tensors() {
    for (name, batch) in [("block", 2), ("resnet50", 1)] {
        let model = TrainedModel::with_batch(name, "/gpu:0", Some(batch)).expect("a model");
        let gpu = NullGpu::new();
        let gpus: [Arc<dyn Gpu>; 1] = [gpu.clone()];
        let session = model.session(&gpus).expect("a session");
        // The first step puts constants on the GPU, and gives variables memory of their own.
        model.losses(&session, 1).expect("a step");
        let _ = gpu.most_alive();
        let between = gpu.memory().in_use;
        model.losses(&session, 5).expect("steps");
        let least = gpu.most_alive() - between;
        let taken = gpu.recorded_memory();
        assert!(taken > 0, "{name} was not recorded");
        assert!(taken as f64 <= 1.05 * least as f64, "{name} takes {taken} bytes for {least}");
        // A replayed step allocates nothing.
        let _ = gpu.most_alive();
        let alive = gpu.most_alive();
        model.losses(&session, 3).expect("steps");
        assert_eq!(gpu.most_alive(), alive, "{name} was not replayed");
    }
}

#[test]
fn two_kinds_of_steps_share_the_memory_of_recordings() {
    let model = TrainedModel::with_batch("block", "/gpu:0", Some(8)).expect("a model");
    let gpu = NullGpu::new();
    let gpus: [Arc<dyn Gpu>; 1] = [gpu.clone()];
    let session = model.session(&gpus).expect("a session");
    for _ in 0..6 {
        model.losses(&session, 1).expect("a step");
        model.steps(&session, 3).expect("steps");
    }
    let (in_use, peak) = (gpu.memory().in_use, gpu.memory().peak);
    assert!(peak as f64 <= 1.1 * in_use as f64, "{peak} bytes were used, {in_use} are needed");
}

#[test]
fn a_variable_that_is_assigned_in_every_step_stays_where_it_is() {
    let losses = |records_steps: bool| {
        let (gpu, options) =
            simulated(SimulatedGpuOptions { records_steps, ..SimulatedGpuOptions::default() });
        let g = Graph::new();
        let (loss, train) = g.device("/gpu:0", || {
            let w = g.variable("w", ferroflow::train::init::ones([4]));
            let loss = (&*w - 3.0).square().sum(&[0]);
            // Adam assigns the powers of its decay rates.
            let train = Adam::new(0.1).minimize(&loss);
            (loss, train)
        });
        let session = Session::local_with(&g, &options).expect("a session");
        session.run(&g.global_initializer()).expect("initial values");
        let step = |_| session.run((loss.scalar::<f32>(), &train)).expect("a step").0;
        ((0..10).map(step).collect::<Vec<f32>>(), gpu.replays())
    };
    let ((got, replayed), (want, plain)) = (losses(true), losses(false));
    assert_eq!(got, want);
    assert!(replayed >= 5 && plain == 0, "{replayed} and {plain} steps were replayed");
}

#[test]
fn kernels_are_compiled_ahead_of_the_first_step() {
    for (name, has_library) in MODELS.iter().flat_map(|name| [(name, false), (name, true)]) {
        let model = TrainedModel::with_batch(name, "/gpu:0", Some(2)).expect("a model");
        let gpu = NullGpu::with_convolutions(has_library);
        let gpus: [Arc<dyn Gpu>; 1] = [gpu.clone()];
        let session = model.session(&gpus).expect("a session");
        model.losses(&session, 1).expect("a step");
        let (late, used) = (gpu.unprepared(), gpu.texts().len());
        assert!(late.is_empty(), "{name}: {} kernels are late: {late:#?}", late.len());
        let prepared = gpu.prepared();
        assert!(prepared <= 2 * used, "{name}: {prepared} texts are compiled, {used} are used");
    }
}

/// The bits of variables of these lengths after a few steps towards different values.
fn trained(lengths: &[usize], minimize: fn(&Output) -> Operation) -> Vec<Vec<u32>> {
    let (_, options) = simulated(SimulatedGpuOptions::default());
    let graph = Graph::new();
    let g = &graph;
    let (variables, train) = g.device("/gpu:0", || {
        let variables: Vec<_> = lengths
            .iter()
            .map(|n| g.variable(&format!("w{n}"), ferroflow::train::init::ones([*n])))
            .collect();
        let distance = |(w, n): (&Variable, &usize)| {
            let to: Vec<f32> = (0..*n).map(|i| 0.1 + i as f32 / 7.0).collect();
            (&**w - g.constant(Tensor::vector(&to))).square().sum(&[0])
        };
        let loss = variables.iter().zip(lengths).map(distance).reduce(|a, b| a + b);
        let train = minimize(&loss.expect("a variable"));
        (variables, train)
    });
    let session = Session::local_with(&graph, &options).expect("a session");
    session.run(&graph.global_initializer()).expect("initial values");
    (0..3).for_each(|_| session.run(&train).expect("a step"));
    let bits = |w: &Variable| {
        let value: Tensor = session.run(&**w).expect("a variable");
        value.as_slice::<f32>().expect("floats").iter().map(|x| x.to_bits()).collect()
    };
    variables.iter().map(bits).collect()
}

#[test]
fn variables_that_are_updated_together_have_the_bits_of_each_alone() {
    let optimizers: [fn(&Output) -> Operation; 5] = [
        |loss| Sgd::new(0.1).minimize(loss),
        |loss| Momentum::new(0.1, 0.9).minimize(loss),
        |loss| Momentum::new(0.1, 0.9).nesterov().minimize(loss),
        |loss| Adam::new(0.1).minimize(loss),
        |loss| RmsProp::new(0.1).minimize(loss),
    ];
    for (i, minimize) in optimizers.into_iter().enumerate() {
        // Enough for a small launch, and for several groups.
        let lengths: Vec<usize> = match i {
            1 => (1..70).chain([1023, 1024, 4099]).collect(),
            _ => vec![1, 3, 4, 1023, 1024, 1025, 4099],
        };
        let together = trained(&lengths, minimize);
        for (got, n) in together.iter().zip(&lengths).rev().take(9) {
            assert_eq!(*got, trained(&[*n], minimize)[0], "{n} elements, optimizer {i}");
        }
    }
}

#[test]
fn an_optimizer_updates_all_variables_in_few_launches() {
    for (name, most) in [("mlp", 1), ("cnn", 1), ("resnet50", 3), ("block", 1)] {
        let model = TrainedModel::with_batch(name, "/gpu:0", Some(2)).expect("a model");
        let gpu = NullGpu::new();
        let gpus: [Arc<dyn Gpu>; 1] = [gpu.clone()];
        let session = model.session(&gpus).expect("a session");
        gpu.begin_list();
        model.losses(&session, 1).expect("a step");
        let list = gpu.end_list();
        let updates = list.iter().filter(|work| work.label.starts_with("apply")).count();
        assert!((1..=most).contains(&updates), "{name} has {updates} launches for its updates");
    }
}
