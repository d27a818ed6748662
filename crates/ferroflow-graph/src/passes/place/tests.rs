use super::*;
use crate::attr::{AttrList, Attrs};
use crate::catalog::Catalog;
use crate::def::{GraphDef, NodeDef};
use crate::op_def::OpRole;

const PS0: &str = "/job:ps/replica:0/task:0/device:CPU:0";
const PS1: &str = "/job:ps/replica:0/task:1/device:CPU:0";
const WORKER: &str = "/job:worker/replica:0/task:0/device:CPU:0";

pub(super) fn catalog() -> Catalog {
    let mut c = Catalog::new();
    c.op("Variable").output("ref: Ref(float)").stateful();
    c.op("Handle").output("handle: resource").stateful();
    c.op("Assign").input("ref: Ref(float)").input("v: float").output("o: Ref(float)").stateful();
    c.op("Read").input("handle: resource").output("v: float").stateful();
    c.op("RefMerge").input("x: Ref(float)").input("y: Ref(float)").output("o: Ref(float)");
    c.op("Pass")
        .input("x: resource")
        .input("y: resource")
        .output("o: resource")
        .takes_resources_from_anywhere();
    c.op("Const").output("y: float").role(OpRole::Constant);
    c.op("Add").input("x: float").input("y: float").output("z: float");
    c.op("Shape").input("x: float").output("y: int32").metadata();
    c
}

/// Name, op, inputs, device, group.
pub(super) type Line<'a> = (&'a str, &'a str, &'a [&'a str], &'a str, &'a str);

pub(super) fn def(lines: &[Line<'_>]) -> GraphDef {
    let node = |&(name, op, inputs, device, class): &Line<'_>| NodeDef {
        name: name.into(),
        op: op.into(),
        inputs: inputs.iter().map(|s| s.to_string()).collect(),
        device: device.into(),
        attrs: match class {
            "" => Attrs::new(),
            class => {
                let class = bytes::Bytes::from(format!("loc:@{class}"));
                Attrs::new().with("_class", AttrList::Strs(vec![class]))
            }
        },
        ..NodeDef::default()
    };
    GraphDef { nodes: lines.iter().map(node).collect(), ..GraphDef::default() }
}

fn devices() -> Devices {
    let cpu = |job: &str, task| Arc::new(DeviceInfo::cpu(job, task, 0, 1));
    Devices::new(&[cpu("worker", 0)], &[cpu("ps", 0), cpu("ps", 1)])
}

fn placed(lines: &[Line<'_>], soft: bool) -> Result<Vec<String>> {
    let mut graph = GraphIr::from_def(&def(lines), &catalog())?;
    place(&mut graph, 0, &devices(), soft)?;
    Ok(graph.iter().map(|(_, n)| n.device.clone()).collect())
}

fn error(lines: &[Line<'_>]) -> String {
    let e = placed(lines, false).unwrap_err();
    assert_eq!(e.code(), ferroflow_core::Code::InvalidArgument);
    e.message().to_string()
}

#[test]
fn nodes_without_a_device_go_to_the_master() {
    let lines: [Line<'_>; 3] = [
        ("a", "Add", &["c", "c"], "", ""),
        ("c", "Const", &[], "", ""),
        ("b", "Add", &["a", "a"], "/job:ps", ""),
    ];
    assert_eq!(placed(&lines, false).unwrap(), [WORKER, WORKER, PS0]);
    let lines: [Line<'_>; 2] =
        [("c", "Const", &[], "/task:1", ""), ("d", "Const", &[], "/cpu:0", "")];
    assert_eq!(placed(&lines, false).unwrap(), [PS1, WORKER]);
}

#[test]
fn users_of_a_variable_are_placed_on_its_device() {
    let lines: [Line<'_>; 5] = [
        ("v", "Variable", &[], "/job:ps/task:1", ""),
        ("c", "Const", &[], "", ""),
        ("assign", "Assign", &["v", "c"], "/job:worker/task:0", ""),
        ("h", "Handle", &[], "/job:ps/task:1", ""),
        ("read", "Read", &["h"], "/job:worker", ""),
    ];
    assert_eq!(placed(&lines, false).unwrap(), [PS1; 5]);
}

#[test]
fn colocated_variables_cannot_request_two_devices() {
    let lines: [Line<'_>; 3] = [
        ("a", "Variable", &[], "/job:ps/task:0", ""),
        ("b", "Variable", &[], "/job:ps/task:1", ""),
        ("m", "RefMerge", &["a", "b"], "", ""),
    ];
    for soft in [false, true] {
        let e = placed(&lines, soft).unwrap_err();
        assert!(
            e.message().contains("incompatible resource devices: /job:ps/task:1 vs /job:ps/task:0"),
            "{e}"
        );
    }
    let lines: [Line<'_>; 3] = [
        ("a", "Handle", &[], "/job:ps/task:0", ""),
        ("b", "Handle", &[], "/job:ps/task:1", ""),
        ("m", "Pass", &["a", "b"], "", ""),
    ];
    assert_eq!(placed(&lines, false).unwrap(), [PS0, PS1, WORKER]);
}

#[test]
fn groups_share_a_device() {
    let lines: [Line<'_>; 4] = [
        ("c", "Const", &[], "", ""),
        ("a", "Add", &["c", "c"], "/job:ps/task:1", ""),
        ("b", "Add", &["c", "c"], "", "a"),
        ("d", "Add", &["a", "b"], "", "absent"),
    ];
    assert_eq!(placed(&lines, false).unwrap(), [PS1, PS1, PS1, WORKER]);
    let lines: [Line<'_>; 3] = [
        ("c", "Const", &[], "", ""),
        ("a", "Add", &["c", "c"], "/job:ps/task:0", ""),
        ("b", "Add", &["c", "c"], "/job:ps/task:1", "a"),
    ];
    assert_eq!(
        error(&lines),
        "Cannot colocate nodes {{colocation_node b}} and {{colocation_node a}}: Cannot merge devices \
         with incompatible tasks: '/job:ps/task:1' and '/job:ps/task:0'\n\t [[{{node b}}]]"
    );
    assert_eq!(placed(&lines, true).unwrap(), [WORKER, PS0, PS1]);
}

#[test]
fn a_missing_device_is_named_in_the_error() {
    let lines: [Line<'_>; 1] = [("c", "Const", &[], "/job:ps/task:7", "")];
    let says = "Cannot assign a device for operation c: {{node c}} was explicitly assigned to \
                /job:ps/task:7 but available devices are [ /job:ps/replica:0/task:0/device:CPU:0, \
                /job:ps/replica:0/task:1/device:CPU:0, /job:worker/replica:0/task:0/device:CPU:0 ]. \
                Make sure the device specification refers to a valid device.\n\t [[c]]";
    assert_eq!(error(&lines), says);
    assert!(placed(&lines, true).is_err(), "the task is never given up");
    let lines: [Line<'_>; 1] = [("c", "Const", &[], "/job:ps/task:1/device:GPU:0", "")];
    assert!(error(&lines).contains("appears to be a GPU"));
    assert_eq!(placed(&lines, true).unwrap(), [PS1]);
}

#[test]
fn placed_nodes_stay_and_attract_their_users() {
    let mut graph = GraphIr::from_def(
        &def(&[("v", "Variable", &[], "/job:ps/task:1", ""), ("c", "Const", &[], "", "")]),
        &catalog(),
    )
    .unwrap();
    place(&mut graph, 0, &devices(), false).unwrap();
    let more = def(&[
        ("assign", "Assign", &["v", "c"], "", ""),
        ("s", "Shape", &["v"], "", ""),
        ("t", "Shape", &["v"], "/job:worker", ""),
    ]);
    graph.extend(&more, &catalog()).unwrap();
    place(&mut graph, 2, &devices(), false).unwrap();
    let devices: Vec<&str> = graph.iter().map(|(_, n)| n.device.as_str()).collect();
    assert_eq!(devices, [PS1, WORKER, PS1, PS1, WORKER]);
}
