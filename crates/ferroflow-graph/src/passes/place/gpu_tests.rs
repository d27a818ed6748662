//! Placement on GPUs, and the copies between memories that follow from it.

use super::tests::{Line, def};
use super::*;
use crate::catalog::Catalog;
use crate::op_def::OpRole;
use crate::passes::{Pruned, copy_between_memories};

const CPU: &str = "/job:worker/replica:0/task:0/device:CPU:0";
const GPU: &str = "/job:worker/replica:0/task:0/device:GPU:0";

/// Ops with a kernel for GPUs, ops without one, and a variable whose `Assign` may have either.
fn catalog(assigns_on_gpu: bool) -> Catalog {
    let mut c = Catalog::new();
    c.op("Const").output("y: float").role(OpRole::Plain).anywhere();
    c.op("Fast").input("x: float").output("y: float").anywhere();
    c.op("Slow").input("x: float").output("y: float");
    c.op("Shape").input("x: float").output("y: int32").metadata().anywhere();
    c.op("Reshape")
        .input("x: float")
        .input("axis: float")
        .output("y: float")
        .anywhere()
        .host_inputs(&["axis"]);
    c.op("Variable").output("ref: Ref(float)").stateful().anywhere();
    c.op("Handle").output("handle: resource").stateful().anywhere();
    c.op("Call").input("handle: resource").output("y: float").takes_resources_from_anywhere();
    let assign = c.op("Assign").input("ref: Ref(float)").input("v: float").output("o: Ref(float)");
    drop(if assigns_on_gpu { assign.anywhere() } else { assign });
    c
}

fn devices() -> Devices {
    let cpu = Arc::new(DeviceInfo::cpu("worker", 0, 0, 1));
    let gpu = DeviceName { kind: Some("GPU".into()), ..cpu.name.clone() };
    Devices::new(&[cpu, Arc::new(DeviceInfo::new(gpu, 2))], &[])
}

fn graph(lines: &[Line<'_>], assigns_on_gpu: bool, soft: bool) -> Result<GraphIr> {
    let mut graph = GraphIr::from_def(&def(lines), &catalog(assigns_on_gpu))?;
    place(&mut graph, 0, &devices(), soft)?;
    Ok(graph)
}

fn placed(lines: &[Line<'_>], assigns_on_gpu: bool, soft: bool) -> Result<Vec<String>> {
    Ok(graph(lines, assigns_on_gpu, soft)?.iter().map(|(_, n)| n.device.clone()).collect())
}

#[test]
fn a_gpu_is_preferred_where_there_is_a_kernel() {
    let lines: [Line<'_>; 4] = [
        ("c", "Const", &[], "", ""),
        ("fast", "Fast", &["c"], "", ""),
        ("slow", "Slow", &["fast"], "", ""),
        ("here", "Fast", &["slow"], "/cpu:0", ""),
    ];
    assert_eq!(placed(&lines, true, false).unwrap(), [GPU, GPU, CPU, CPU]);
}

#[test]
fn a_variable_runs_on_the_cpu_if_an_update_has_no_kernel() {
    let lines: [Line<'_>; 3] = [
        ("v", "Variable", &[], "", ""),
        ("c", "Const", &[], "", ""),
        ("assign", "Assign", &["v", "c"], "", ""),
    ];
    assert_eq!(placed(&lines, true, false).unwrap(), [GPU; 3]);
    assert_eq!(placed(&lines, false, false).unwrap(), [CPU; 3]);
}

#[test]
fn a_variable_that_a_function_takes_is_on_the_cpu() {
    let lines: [Line<'_>; 3] = [
        ("v", "Handle", &[], "", ""),
        ("call", "Call", &["v"], "", ""),
        ("w", "Handle", &[], "", ""),
    ];
    assert_eq!(placed(&lines, true, false).unwrap(), [CPU, CPU, GPU]);
}

#[test]
fn a_gpu_without_a_kernel_needs_soft_placement() {
    let lines: [Line<'_>; 2] =
        [("c", "Const", &[], "/gpu:0", ""), ("slow", "Slow", &["c"], "/gpu:0", "")];
    let e = placed(&lines, true, false).unwrap_err();
    assert!(e.message().contains("no supported kernel for GPU devices is available"), "{e}");
    assert_eq!(placed(&lines, true, true).unwrap(), [GPU, CPU]);
}

#[test]
fn values_are_copied_once_where_memories_differ() {
    let lines: [Line<'_>; 6] = [
        ("c", "Const", &[], "/gpu:0", ""),
        ("a", "Slow", &["c"], "", ""),
        ("b", "Slow", &["c"], "", ""),
        ("d", "Fast", &["a"], "", ""),
        ("e", "Reshape", &["d", "a"], "", ""),
        ("f", "Shape", &["e"], "", ""),
    ];
    let graph = graph(&lines, true, false).unwrap();
    let mut step = Pruned { graph, args: Vec::new(), rets: Vec::new() };
    copy_between_memories(&mut step, &|device| device.contains("GPU")).unwrap();
    let graph = &step.graph;
    let inputs = |name: &str| -> Vec<&str> {
        let node = graph.node(graph.find(name).unwrap());
        node.inputs.iter().map(|e| graph.node(e.node).name.as_str()).collect()
    };
    assert_eq!(inputs("a"), ["c/_to_host_0"]);
    assert_eq!(inputs("b"), ["c/_to_host_0"]);
    assert_eq!(inputs("c/_to_host_0"), ["c"]);
    assert_eq!(inputs("d"), ["a/_to_device_0"]);
    // An input in host memory takes the value without a copy.
    assert_eq!(inputs("e"), ["d", "a"]);
    assert_eq!(inputs("f"), ["e"]);
    assert_eq!(graph.len(), lines.len() + 2);
}
