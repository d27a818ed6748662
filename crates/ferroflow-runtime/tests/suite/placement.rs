//! Where a session puts nodes that ask for no device.

use crate::common::{catalog, error_of, request};
use ferroflow_core::{Code, DType, PartialShape, Tensor};
use ferroflow_graph::GraphDef;
use ferroflow_graph::passes::CostModel;
use ferroflow_runtime::{Placement, RunOptions, RunRequest, SessionOptions, Task, TaskSession};
use ferroflow_testing::graph;
use std::collections::BTreeMap;
use std::sync::Arc;

const FIRST: &str = "/job:worker/replica:0/task:0/device:CPU:0";

/// A session on a task with two devices.
fn session(def: &GraphDef, placement: Placement) -> TaskSession {
    let task = Task::new(Arc::new(catalog()), "worker", 0, 2);
    let options = SessionOptions { placement, disable_optimizer: true, ..Default::default() };
    TaskSession::new(task, def, options).unwrap()
}

/// The devices of nodes, by name.
fn devices(
    s: &TaskSession,
    feeds: &[(&str, Tensor)],
    fetches: &[&str],
) -> BTreeMap<String, String> {
    let options = RunOptions { output_partition_graphs: true, ..RunOptions::default() };
    let request = RunRequest { options, ..request(feeds, fetches, &[]) };
    let graph = s.run_blocking(request).unwrap().partition_graphs.remove(0);
    graph.nodes.into_iter().map(|n| (n.name, n.device)).collect()
}

/// Two products of large matrices, and one element of each.
fn two_products() -> GraphDef {
    let shape = PartialShape::from_i64s(&[-1, 300]).unwrap();
    graph()
        .dtype(DType::Float)
        .placeholder("x")
        .attr("shape", shape)
        .op("a", "MatMul", &["x", "x"])
        .t()
        .op("b", "MatMul", &["x", "x"])
        .t()
        .op("y", "Sub", &["a", "b"])
        .t()
        .build()
}

fn x() -> (&'static str, Tensor) {
    let values: Vec<f32> = (0..300 * 300).map(|i| (i % 7) as f32 - 3.0).collect();
    ("x", Tensor::from_slice([300, 300], &values).unwrap())
}

#[test]
fn by_cost_work_is_shared_by_devices_and_values_stay() {
    let model = CostModel::fixed(1e8);
    let s = session(&two_products(), Placement::ByCost(Box::new(model)));
    let at = devices(&s, &[x()], &["y"]);
    assert_ne!(at["a"], at["b"], "{at:?}");
    let plain = session(&two_products(), Placement::First);
    assert!(devices(&plain, &[x()], &["y"]).values().all(|d| d == FIRST || d.is_empty()));
    // Goes on after the measured run, which places the step again.
    for _ in 0..6 {
        let got = s.run_blocking(request(&[x()], &["y"], &[])).unwrap();
        let want = plain.run_blocking(request(&[x()], &["y"], &[])).unwrap();
        assert_eq!(got.tensors, want.tensors);
        assert!(got.stats.is_none(), "no trace was requested");
    }
}

#[test]
fn what_was_measured_counts() {
    // The model calls the op slow, but it is too fast to be worth a second device.
    let mut model = CostModel::fixed(1e3);
    model.within_task.latency = 10.0;
    let def = two_products();
    let s = session(&def, Placement::ByCost(Box::new(model)));
    let small = ("x", Tensor::from_slice([1, 1], &[2f32]).unwrap());
    for _ in 0..3 {
        s.run_blocking(request(std::slice::from_ref(&small), &["y"], &[])).unwrap();
    }
    let at = devices(&s, &[small], &["y"]);
    assert_eq!(at["a"], at["b"], "{at:?}");
}

#[test]
fn a_step_is_placed_anew_when_its_costs_change() {
    let shape = PartialShape::from_i64s(&[-1, 300]).unwrap();
    let def = graph()
        .dtype(DType::Float)
        .placeholder("x")
        .attr("shape", shape)
        .constant("m", Tensor::from_slice([300, 300], &vec![0.5f32; 300 * 300]).unwrap())
        .op("a", "MatMul", &["x", "m"])
        .t()
        .op("b", "MatMul", &["x", "m"])
        .t()
        .op("y", "Sub", &["a", "b"])
        .t()
        .build();
    const MANY: usize = 120;
    let rows = |n: usize| ("x", Tensor::from_slice([n, 300], &vec![0.5f32; n * 300]).unwrap());
    let plain = session(&def, Placement::First);
    let time = || {
        let begins = std::time::Instant::now();
        plain.run_blocking(request(&[rows(MANY)], &["y"], &[])).unwrap();
        begins.elapsed().as_secs_f64()
    };
    // A second device pays off for many rows, and not for one.
    let mut model = CostModel::fixed(1e3);
    model.within_task.latency = (0..5).map(|_| time()).fold(f64::INFINITY, f64::min) / 20.0;
    model.within_task.bandwidth = 1e15;
    let s = session(&def, Placement::ByCost(Box::new(model)));
    let run = |x| s.run_blocking(request(&[x], &["y"], &[])).unwrap();
    for _ in 0..99 {
        run(rows(1));
    }
    // According to the measurement, one device is enough for a row.
    let at = devices(&s, &[rows(1)], &["y"]);
    assert_eq!(at["a"], at["b"], "{at:?}");
    // Only measured runs change the placement; one in a hundred is measured.
    for _ in 0..110 {
        run(rows(MANY));
    }
    let at = devices(&s, &[rows(MANY)], &["y"]);
    assert_ne!(at["a"], at["b"], "{at:?}");
}

#[test]
fn devices_are_measured_where_costs_are_to_decide() {
    let task = Task::new(Arc::new(catalog()), "worker", 0, 2);
    let open = |placement| {
        let options = SessionOptions { placement, ..Default::default() };
        TaskSession::new(task.clone(), &two_products(), options).unwrap();
        task.devices.iter().map(|d| d.speed.get().copied()).collect::<Vec<_>>()
    };
    assert_eq!(open(Placement::First), [None, None]);
    assert_eq!(open(Placement::ByCost(Box::new(CostModel::fixed(1e9)))), [None, None]);
    for speed in open(Placement::ByCost(Box::default())) {
        let speed = speed.unwrap();
        assert!(speed.flops > 1e6 && speed.bandwidth > 1e6 && speed.memory > 0, "{speed:?}");
    }
}

#[test]
fn what_holds_state_stays_where_the_first_step_put_it() {
    let def = graph()
        .dtype(DType::Float)
        .op("v", "VariableV2", &[])
        .attr("dtype", DType::Float)
        .attr("shape", PartialShape::from([300, 300]))
        .placeholder("x")
        .op("set", "Assign", &["v", "x"])
        .t()
        .op("a", "MatMul", &["v", "x"])
        .t()
        .op("b", "MatMul", &["x", "x"])
        .t()
        .op("y", "Sub", &["a", "b"])
        .t()
        .build();
    let model = CostModel::fixed(1e8);
    let s = session(&def, Placement::ByCost(Box::new(model)));
    s.run_blocking(request(&[x()], &[], &["set"])).unwrap();
    let y = s.run_blocking(request(&[x()], &["y"], &[])).unwrap().tensors.remove(0);
    assert!(y.as_slice::<f32>().unwrap().iter().all(|y| *y == 0.0));
    let first = devices(&s, &[x()], &["set"]);
    assert_eq!(first["v"], devices(&s, &[x()], &["y"])["v"]);
    assert_eq!(first["v"], first["set"]);
}

#[test]
fn where_only_what_is_needed_is_placed_the_rest_may_be_wrong() {
    let def = graph()
        .constant("x", 1)
        .op("bad", "Identity", &["x"])
        .t()
        .device("/job:nowhere")
        .op("y", "Identity", &["x"])
        .t()
        .build();
    let task = || Task::new(Arc::new(catalog()), "worker", 0, 2);
    let e = error_of(TaskSession::new(task(), &def, SessionOptions::default()));
    assert_eq!(e.code(), Code::InvalidArgument);
    let s = session(&def, Placement::FirstNeeded);
    let y = s.run_blocking(request(&[], &["y"], &[])).unwrap().tensors.remove(0);
    assert_eq!(y.scalar_value::<i32>().unwrap(), 1);
    let e = error_of(s.run_blocking(request(&[], &["bad"], &[])));
    assert_eq!(e.code(), Code::InvalidArgument);
    assert!(e.message().contains("bad"), "{e}");
}

/// Collects the messages of events.
#[derive(Clone, Default)]
struct Messages(Arc<std::sync::Mutex<Vec<String>>>);

impl tracing::field::Visit for Messages {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl tracing::Subscriber for Messages {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "placement"
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn log_device_placement_logs_the_device_of_each_node() {
    let logged = |log_device_placement: bool| {
        let messages = Messages::default();
        let found = messages.0.clone();
        tracing::subscriber::with_default(messages, || {
            let task = Task::new(Arc::new(catalog()), "worker", 0, 2);
            let options = SessionOptions { log_device_placement, ..Default::default() };
            TaskSession::new(task, &two_products(), options).unwrap();
        });
        found.lock().unwrap().clone()
    };
    assert_eq!(logged(false), Vec::<String>::new());
    let lines = logged(true);
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines.contains(&format!("a: (MatMul): {FIRST}")), "{lines:?}");
    assert!(lines.contains(&format!("y: (Sub): {FIRST}")), "{lines:?}");
}
