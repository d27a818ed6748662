use super::*;
use crate::op_def::{ControlFlow, OpRole};
use crate::passes::LinkCost;

fn catalog() -> Catalog {
    let mut c = Catalog::new();
    c.op("Const")
        .output("y: dtype")
        .attr("dtype: type = DT_FLOAT")
        .attr("value: tensor")
        .default(Tensor::scalar(0f32))
        .role(OpRole::Constant);
    c.op("Variable").output("ref: Ref(float)").stateful();
    c.op("Split").output("a: float").output("b: float");
    c.op("Neg").input("x: float").output("y: float");
    c.op("Less").input("x: float").output("y: bool");
    c.op("Add").input("x: float").input("y: float").output("z: float");
    c.op("NoOp").role(OpRole::NoOp);
    c.op("Enter")
        .input("x: T")
        .output("y: T")
        .attr("T: type = DT_FLOAT")
        .attr("frame_name: string")
        .attr("is_constant: bool = false")
        .attr("parallel_iterations: int = 10")
        .control_flow(ControlFlow::Enter);
    for (name, which) in
        [("Exit", ControlFlow::Exit), ("NextIteration", ControlFlow::NextIteration)]
    {
        c.op(name).input("x: T").output("y: T").attr("T: type = DT_FLOAT").control_flow(which);
    }
    c.op("LoopCond").input("x: bool").output("y: bool").control_flow(ControlFlow::LoopCond);
    c.op("Merge")
        .input("x: N * T")
        .output("y: T")
        .output("i: int32")
        .attr("T: type = DT_FLOAT")
        .attr("N: int = 2")
        .control_flow(ControlFlow::Merge);
    c.op("Switch")
        .input("x: T")
        .input("p: bool")
        .output("f: T")
        .output("t: T")
        .attr("T: type = DT_FLOAT")
        .control_flow(ControlFlow::Switch);
    c
}

const PS: &str = "/job:ps/replica:0/task:0";
const WORKER: &str = "/job:worker/replica:0/task:0";

/// Name, op, inputs, and whether it is on the ps.
type Line<'a> = (&'a str, &'a str, &'a [&'a str], bool);

/// The parts, ps first, as lines `name = op(inputs)` of all nodes.
fn cut(lines: &[Line<'_>]) -> (Vec<String>, Vec<String>) {
    let node = |&(name, op, inputs, on_ps): &Line<'_>| NodeDef {
        name: name.into(),
        op: op.into(),
        inputs: inputs.iter().map(|s| s.to_string()).collect(),
        device: format!("{}/device:CPU:0", if on_ps { PS } else { WORKER }),
        attrs: match op {
            "Enter" => Attrs::new().with("frame_name", "loop"),
            _ => Attrs::new(),
        },
        ..NodeDef::default()
    };
    let def = GraphDef { nodes: lines.iter().map(node).collect(), ..GraphDef::default() };
    let graph = GraphIr::from_def(&def, &catalog()).unwrap();
    let devices =
        [Arc::new(DeviceInfo::cpu("ps", 0, 0, 7)), Arc::new(DeviceInfo::cpu("worker", 0, 0, 8))];
    let parts = partition(graph, &devices, &catalog(), &CostModel::cautious()).unwrap();
    let of = |task: &str| {
        let part = parts.iter().find(|p| p.task == task);
        let text = |n: &NodeDef| format!("{} = {}({})", n.name, n.op, n.inputs.join(", "));
        part.map_or(vec![], |p| p.graph.nodes.iter().map(text).collect())
    };
    (of(PS), of(WORKER))
}

#[test]
fn a_tensor_is_sent_once_to_a_task() {
    let (ps, worker) = cut(&[
        ("s", "Split", &[], true),
        ("a", "Neg", &["s"], false),
        ("b", "Add", &["s", "s:1"], false),
        ("c", "Neg", &["s:1"], true),
    ]);
    assert_eq!(ps, ["s = Split()", "s_S0 = _Send(s)", "s_S2 = _Send(s:1)", "c = Neg(s:1)"]);
    assert_eq!(
        worker,
        ["s_S1 = _Recv()", "a = Neg(s_S1)", "s_S3 = _Recv()", "b = Add(s_S1, s_S3)"]
    );
}

#[test]
fn send_and_recv_have_the_same_key() {
    let node = |name: &str, op: &str, input: &[&str], task: &str| NodeDef {
        name: name.into(),
        op: op.into(),
        inputs: input.iter().map(|s| s.to_string()).collect(),
        device: format!("{task}/device:CPU:0"),
        ..NodeDef::default()
    };
    let nodes = vec![node("c", "Const", &[], PS), node("n", "Neg", &["c"], WORKER)];
    let def = GraphDef { nodes, ..GraphDef::default() };
    let graph = GraphIr::from_def(&def, &catalog()).unwrap();
    let devices =
        [Arc::new(DeviceInfo::cpu("ps", 0, 0, 7)), Arc::new(DeviceInfo::cpu("worker", 0, 0, 8))];
    let parts = partition(graph, &devices, &catalog(), &CostModel::cautious()).unwrap();
    let transfers = parts.iter().flat_map(|p| &p.graph.nodes).filter(|n| n.op.starts_with('_'));
    let transfers: Vec<&NodeDef> = transfers.collect();
    assert_eq!(transfers.len(), 2);
    for n in transfers {
        let text = |name: &str| n.attrs.string(name).unwrap();
        assert_eq!(text("tensor_name"), "edge_0_c");
        assert_eq!(text("send_device"), format!("{PS}/device:CPU:0"));
        assert_eq!(text("recv_device"), format!("{WORKER}/device:CPU:0"));
        assert_eq!(n.attrs.int("send_device_incarnation").unwrap(), 7);
        let dtype = if n.op == "_Send" { "T" } else { "tensor_type" };
        assert_eq!(n.attrs.dtype(dtype).unwrap(), DType::Float);
    }
}

#[test]
fn control_edges_between_tasks_become_transfers() {
    let (ps, worker) = cut(&[
        ("go", "NoOp", &[], true),
        ("a", "NoOp", &["^go"], false),
        ("b", "Const", &["^go"], false),
    ]);
    assert_eq!(ps, ["go = NoOp()", "go/ctrl_S0 = Const(^go)", "go_S1 = _Send(go/ctrl_S0)"]);
    assert_eq!(
        worker,
        ["go_S2 = _Recv()", "go_S3 = Identity(go_S2)", "a = NoOp(^go_S3)", "b = Const(^go_S3)"]
    );
}

#[test]
fn a_variable_is_read_after_the_control_inputs_of_its_reader() {
    let (ps, worker) = cut(&[
        ("v", "Variable", &[], true),
        ("go", "NoOp", &[], true),
        ("x", "Const", &[], false),
        ("a", "Add", &["v", "x", "^go"], false),
        ("b", "Neg", &["v"], false),
    ]);
    let starting = |lines: &[String], start: &str| {
        lines.iter().filter(|l| l.starts_with(start)).cloned().collect::<Vec<_>>()
    };
    assert_eq!(starting(&ps, "v_S"), ["v_S0 = _Send(v, ^go)", "v_S6 = _Send(v)"]);
    assert_eq!(starting(&worker, "v_S"), ["v_S1 = _Recv(^x, ^go_S5)", "v_S7 = _Recv()"]);
    assert_eq!(starting(&worker, "b"), ["b = Neg(v_S7)"]);
}

/// A loop whose body is on the ps.
const LOOP: &[Line<'static>] = &[
    ("x", "Const", &[], false),
    ("enter", "Enter", &["x"], true),
    ("merge", "Merge", &["enter", "next"], false),
    ("less", "Less", &["merge"], false),
    ("cond", "LoopCond", &["less"], false),
    ("switch", "Switch", &["merge", "cond"], true),
    ("body", "Neg", &["switch:1"], true),
    ("next", "NextIteration", &["body"], true),
    ("exit", "Exit", &["switch"], true),
    ("y", "Neg", &["exit"], false),
];

#[test]
fn a_task_follows_the_loops_of_others() {
    let (ps, worker) = cut(LOOP);
    let mut ps = ps;
    ps.sort();
    assert_eq!(
        ps,
        [
            "_cloopbody_S0 = Const()",
            "_cloopbody_S1 = Enter(_cloopbody_S0)",
            "_cloopbody_S2 = Merge(_cloopbody_S1, _cloopbody_S4)",
            "_cloopbody_S3 = Switch(_cloopbody_S2, cond_S5)",
            "_cloopbody_S4 = NextIteration(_cloopbody_S3:1)",
            "body = Neg(switch_S1)",
            "body_S2 = _Send(body)",
            "cond_S5 = _Recv(^_cloopbody_S2)",
            "switch_S1 = _Recv(^_cloopbody_S2)",
        ]
    );
    // Control-flow nodes are on the task of their values, and the loop variable stays on one task.
    for name in ["enter", "merge", "switch", "next", "exit"] {
        assert!(worker.iter().any(|l| l.starts_with(&format!("{name} = "))), "{name}: {worker:?}");
    }
    assert!(worker.iter().any(|l| l.starts_with("body_S3 = _Recv(^_cloopnext_S2)")), "{worker:?}");
}

#[test]
fn a_loop_on_one_task_is_unchanged() {
    let all: Vec<Line<'_>> = LOOP.iter().map(|l| (l.0, l.1, l.2, false)).collect();
    let (ps, worker) = cut(&all);
    assert!(ps.is_empty());
    assert_eq!(worker.len(), LOOP.len());
}

#[test]
fn a_value_of_a_loop_is_sent_once_to_a_task() {
    let mut lines = LOOP.to_vec();
    // Another consumer of the loop variable on the ps, and one of the loop's result.
    lines.push(("more", "Neg", &["switch:1"], true));
    lines[7] = ("next", "NextIteration", &["sum"], true);
    lines.push(("sum", "Add", &["body", "more"], true));
    lines.push(("z", "Neg", &["exit"], true));
    lines.push(("zz", "Neg", &["exit"], true));
    let (ps, worker) = cut(&lines);
    let sends = |of: &str| {
        let start = format!("_Send({of}");
        worker.iter().filter(|l| l.contains(&start)).count()
    };
    assert_eq!(sends("switch:1"), 1, "{worker:?}");
    assert_eq!(sends("exit"), 1, "{worker:?}");
    assert_eq!(sends("cond"), 1, "{worker:?}");
    let received = ps.iter().filter(|l| l.contains("= _Recv(")).count();
    let sent = worker.iter().filter(|l| l.contains("= _Send(")).count();
    assert_eq!(received, sent, "{ps:?} {worker:?}");
}

#[test]
fn a_value_that_may_be_dead_is_sent_once_to_a_task() {
    let (ps, worker) = cut(&[
        ("x", "Const", &[], false),
        ("p", "Less", &["x"], false),
        ("s", "Switch", &["x", "p"], false),
        ("a", "Neg", &["s:1"], true),
        ("b", "Neg", &["s:1"], true),
        ("c", "Neg", &["s"], true),
        ("m", "Merge", &["a", "c"], true),
    ]);
    let sends: Vec<&String> = worker.iter().filter(|l| l.contains("= _Send(")).collect();
    assert_eq!(sends.len(), 2, "one for each side: {worker:?}");
    assert_eq!(ps.iter().filter(|l| l.contains("= _Recv(")).count(), 2);
}

/// A chain of products on the worker. Its end takes a large value of the ps, its start another one.
fn chain_with_late_value(model: &CostModel) -> Vec<NodeDef> {
    let mut c = catalog();
    c.op("Large").output("y: float").shape(|_| Ok(vec![[1000, 1000].into()]));
    c.op("Product")
        .input("x: float")
        .input("y: float")
        .output("z: float")
        .flops(|_| 1e10)
        .shape(crate::shape::same_as_input);
    let node = |name: String, op: &str, inputs: Vec<String>, task: &str| NodeDef {
        name,
        op: op.into(),
        inputs,
        device: format!("{task}/device:CPU:0"),
        ..NodeDef::default()
    };
    let mut nodes = vec![
        node("early".into(), "Large", vec![], PS),
        node("late".into(), "Large", vec![], PS),
        node("n0".into(), "Product", vec!["early".into(), "early".into()], WORKER),
    ];
    for i in 1..20 {
        let last = format!("n{}", i - 1);
        nodes.push(node(format!("n{i}"), "Product", vec![last.clone(), last], WORKER));
    }
    nodes.push(node("y".into(), "Product", vec!["n19".into(), "late".into()], WORKER));
    let def = GraphDef { nodes, ..GraphDef::default() };
    let graph = GraphIr::from_def(&def, &c).unwrap();
    let devices =
        [Arc::new(DeviceInfo::cpu("ps", 0, 0, 7)), Arc::new(DeviceInfo::cpu("worker", 0, 0, 8))];
    let parts = partition(graph, &devices, &c, model).unwrap();
    parts.into_iter().find(|p| p.task == WORKER).unwrap().graph.nodes
}

#[test]
fn a_value_that_is_needed_late_is_received_late() {
    let waits_for = |nodes: &[NodeDef], source: &str| -> Vec<String> {
        let is_its =
            |n: &&NodeDef| n.op == "_Recv" && n.attrs.string("_src").is_ok_and(|s| s == source);
        nodes.iter().find(is_its).unwrap().inputs.clone()
    };
    // A product takes 0.1 s and a transfer 3.3 ms: any of the last nodes is right.
    let nodes = chain_with_late_value(&CostModel::default());
    assert_eq!(waits_for(&nodes, "late"), ["^n18"]);
    assert!(waits_for(&nodes, "early").is_empty());
    // A transfer that takes as long as the chain must start at once.
    let slow = LinkCost { latency: 1.0, bandwidth: 1.25e9 };
    let nodes = chain_with_late_value(&CostModel { link: slow, ..CostModel::default() });
    assert!(waits_for(&nodes, "late").is_empty());
}
