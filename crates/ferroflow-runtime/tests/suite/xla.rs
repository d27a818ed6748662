//! XLA's operations that call functions. The expected values are TensorFlow's, compiled by XLA.
//!
//! Each function has two forms. One is element-wise and called with vectors. The other contains a
//! reshape to a scalar and is called for each element.

use crate::common::*;
use ferroflow_core::{Code, DType, Result, Tensor};
use ferroflow_graph::{AttrValue, FunctionDef, GraphDef};
use ferroflow_testing::{GraphBuilder, func, function, graph};

const FLOAT: DType = DType::Float;
const INT: DType = DType::Int32;

/// The result of `op` on two floats, by itself or reshaped to a scalar.
fn body(op: &str, result: &str, dtype: DType, by_element: bool) -> (GraphBuilder, String) {
    let g = graph().op("y", op, &["a", "b"]).attr("T", FLOAT);
    let out = format!("y:{result}:0");
    if !by_element {
        return (g, out);
    }
    let none = Tensor::zeros(INT, [0]).unwrap();
    let g = g.constant("shape", none).op("s", "Reshape", &[&out, "shape:output:0"]);
    (g.attr("T", dtype).attr("Tshape", INT), "s:output:0".into())
}

fn binary(name: &str, op: &str, by_element: bool) -> FunctionDef {
    let (g, out) = body(op, "z", FLOAT, by_element);
    function(name, &["a: float", "b: float"], &["r: float"], &[("r", &out)], g)
}

fn comparison(name: &str, op: &str, by_element: bool) -> FunctionDef {
    let (g, out) = body(op, "z", DType::Bool, by_element);
    function(name, &["a: float", "b: float"], &["r: bool"], &[("r", &out)], g)
}

/// The larger of two floats, and its index.
fn larger(by_element: bool) -> FunctionDef {
    let (g, is_less) = body("Less", "z", DType::Bool, by_element);
    let g = g.op("value", "SelectV2", &[&is_less, "b", "a"]).attr("T", FLOAT);
    let g = g.op("number", "SelectV2", &[&is_less, "j", "i"]).attr("T", INT);
    function(
        "larger",
        &["a: float", "i: int32", "b: float", "j: int32"],
        &["r: float", "n: int32"],
        &[("r", "value:output:0"), ("n", "number:output:0")],
        g,
    )
}

/// Whether the first float comes before the second. Ignores the integers.
fn before(by_element: bool) -> FunctionDef {
    let (g, out) = body("Less", "z", DType::Bool, by_element);
    let args = ["a: float", "b: float", "i: int32", "j: int32"];
    function("before", &args, &["r: bool"], &[("r", &out)], g)
}

fn library(by_element: bool) -> GraphBuilder {
    graph()
        .function(binary("add", "AddV2", by_element))
        .function(binary("max", "Maximum", by_element))
        .function(comparison("at_least", "GreaterEqual", by_element))
        .function(larger(by_element))
        .function(before(by_element))
}

fn x() -> Tensor {
    let values = [1f32, 5.0, -2.0, 4.0, 7.0, 0.0, 3.0, -6.0, 2.0, 8.0, -1.0, 9.0];
    Tensor::from_slice([3, 4], &values).unwrap()
}

fn columns() -> Tensor {
    Tensor::from_slice([3, 4], &[0i32, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]).unwrap()
}

fn ints(dims: &[usize], values: &[i32]) -> Tensor {
    Tensor::from_slice(dims, values).unwrap()
}

/// A graph of one node with constant inputs.
fn one_node(
    by_element: bool,
    op: &str,
    inputs: &[Tensor],
    attrs: Vec<(&str, AttrValue)>,
) -> GraphDef {
    let mut g = library(by_element);
    let names: Vec<String> = (0..inputs.len()).map(|i| format!("in{i}")).collect();
    for (name, t) in names.iter().zip(inputs) {
        g = g.constant(name, t.clone());
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    g = g.op("y", op, &names);
    for (name, value) in attrs {
        g = g.attr(name, value);
    }
    g.build()
}

fn run(graph: &GraphDef, fetches: &[&str]) -> Result<Vec<Tensor>> {
    Ok(session(graph).run_blocking(request(&[], fetches, &[]))?.tensors)
}

/// Runs the node with both kinds of functions and expects these outputs.
#[track_caller]
fn check(op: &str, inputs: &[Tensor], attrs: &[(&str, AttrValue)], want: &[Tensor]) {
    for by_element in [false, true] {
        let g = one_node(by_element, op, inputs, attrs.to_vec());
        let fetches: Vec<String> = (0..want.len()).map(|i| format!("y:{i}")).collect();
        let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
        let got = run(&g, &fetches).unwrap_or_else(|e| panic!("{op}: {e}"));
        assert_eq!(got, want, "{op}, by element: {by_element}");
    }
}

fn reduction(dims: &[i64], f: &str) -> [(&'static str, AttrValue); 3] {
    [("T", FLOAT.into()), ("dimensions_to_reduce", dims.to_vec().into()), ("reducer", func(f))]
}

#[test]
fn reductions_combine_dimensions_and_the_initial_value() {
    let (ten, four) = (Tensor::scalar(10f32), Tensor::scalar(4f32));
    let by_row = Tensor::vector(&[18f32, 14.0, 28.0]);
    check("XlaReduce", &[x(), ten.clone()], &reduction(&[1], "add"), &[by_row]);
    check("XlaReduce", &[x(), ten.clone()], &reduction(&[0, 1], "add"), &[Tensor::scalar(40f32)]);
    let largest = Tensor::vector(&[7f32, 8.0, 4.0, 9.0]);
    check("XlaReduce", &[x(), four], &reduction(&[0], "max"), &[largest]);
    let nothing = Tensor::zeros(FLOAT, [2, 0]).unwrap();
    let inits = Tensor::vector(&[10f32, 10.0]);
    check("XlaReduce", &[nothing, ten.clone()], &reduction(&[1], "add"), &[inits]);
    let g = one_node(false, "XlaReduce", &[x(), ten], reduction(&[2], "add").to_vec());
    assert_eq!(run(&g, &["y"]).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn several_tensors_are_reduced_together() {
    let inputs = [x(), columns(), Tensor::scalar(-99f32), Tensor::scalar(-1i32)];
    let attrs = [
        ("T", vec![FLOAT, INT].into()),
        ("dimensions_to_reduce", vec![1i64].into()),
        ("reducer", func("larger")),
    ];
    let want = [Tensor::vector(&[5f32, 7.0, 9.0]), Tensor::vector(&[1i32, 0, 3])];
    check("XlaVariadicReduceV2", &inputs, &attrs, &want);
}

#[test]
fn tensors_are_sorted_together() {
    let attrs = [
        ("T", vec![FLOAT, INT].into()),
        ("comparator", func("before")),
        ("is_stable", true.into()),
    ];
    let sorted = [-2f32, 1.0, 4.0, 5.0, -6.0, 0.0, 3.0, 7.0, -1.0, 2.0, 8.0, 9.0];
    let want = [
        Tensor::from_slice([3, 4], &sorted).unwrap(),
        ints(&[3, 4], &[2, 0, 3, 1, 3, 1, 2, 0, 2, 0, 1, 3]),
    ];
    check("XlaVariadicSort", &[x(), columns(), Tensor::scalar(1i32)], &attrs, &want);
    // Equal elements keep their order.
    let equal = Tensor::vector(&[1f32, 0.0, 1.0, 0.0, 1.0]);
    let numbers = Tensor::vector(&[0i32, 1, 2, 3, 4]);
    let want = [Tensor::vector(&[0f32, 0.0, 1.0, 1.0, 1.0]), Tensor::vector(&[1i32, 3, 0, 2, 4])];
    check("XlaVariadicSort", &[equal, numbers, Tensor::scalar(0i32)], &attrs, &want);
}

#[test]
fn windows_combine_what_is_under_them() {
    let attrs = |f: &str| [("T", FLOAT.into()), ("Tindices", INT.into()), ("computation", func(f))];
    let window = |init: f32, lists: [[i32; 2]; 4], padding: [i32; 4]| {
        let mut inputs = vec![x(), Tensor::scalar(init)];
        inputs.extend(lists.map(|list| Tensor::vector(&list)));
        inputs.push(ints(&[2, 2], &padding));
        inputs
    };
    let inputs = window(0.0, [[2, 2], [1, 2], [1, 1], [1, 1]], [1, 0, 0, 1]);
    let sums = Tensor::from_slice([3, 2], &[6f32, 2.0, 13.0, -1.0, 17.0, 5.0]).unwrap();
    check("XlaReduceWindow", &inputs, &attrs("add"), &[sums]);
    let inputs = window(-9.0, [[2, 2], [2, 1], [1, 2], [1, 2]], [0; 4]);
    let largest = Tensor::from_slice([1, 5], &[7f32, -9.0, 5.0, -9.0, 4.0]).unwrap();
    check("XlaReduceWindow", &inputs, &attrs("max"), &[largest]);
    let inputs = window(0.0, [[2, 2], [0, 2], [1, 1], [1, 1]], [0; 4]);
    let g = one_node(false, "XlaReduceWindow", &inputs, attrs("add").to_vec());
    assert_eq!(run(&g, &["y"]).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn sources_are_added_to_the_selected_elements() {
    let inputs = [
        x(),
        Tensor::vector(&[2i32, 2]),
        Tensor::vector(&[1i32, 2]),
        ints(&[2, 2], &[0; 4]),
        Tensor::from_slice([2, 2], &[10f32, 20.0, 30.0, 40.0]).unwrap(),
        Tensor::scalar(0.5f32),
    ];
    let attrs = [
        ("T", FLOAT.into()),
        ("Tindices", INT.into()),
        ("select", func("at_least")),
        ("scatter", func("add")),
    ];
    let want = [0.5f32, 0.5, 0.5, 20.5, 10.5, 0.5, 0.5, 0.5, 0.5, 30.5, 0.5, 40.5];
    let want = Tensor::from_slice([3, 4], &want).unwrap();
    check("XlaSelectAndScatter", &inputs, &attrs, &[want]);
}

#[test]
fn updates_are_combined_where_indices_say() {
    let attrs = |numbers: &'static [u8]| {
        [
            ("T", FLOAT.into()),
            ("Tindices", INT.into()),
            ("update_computation", func("add")),
            ("dimension_numbers", AttrValue::Str(numbers.into())),
            ("indices_are_sorted", false.into()),
        ]
    };
    let counted = |dims: &[usize]| {
        let values: Vec<f32> = (0..dims.iter().product()).map(|i: usize| i as f32).collect();
        Tensor::from_slice(dims, &values).unwrap()
    };
    // Row 0 is updated twice; there is no row 7.
    let rows = b"\n\x01\x01\x12\x01\x00\x1a\x01\x00 \x01";
    let want = [9f32, 15.0, 10.0, 18.0, 7.0, 0.0, 3.0, -6.0, 6.0, 13.0, 5.0, 16.0];
    let want = Tensor::from_slice([3, 4], &want).unwrap();
    let inputs = [x(), ints(&[4, 1], &[0, 2, 0, 7]), counted(&[4, 4])];
    check("XlaScatter", &inputs, &attrs(rows), &[want]);
    // A block that does not lie within the operand is skipped.
    let blocks = b"\n\x02\x01\x02\x1a\x02\x00\x01 \x01";
    let want = [1f32, 5.0, -1.0, 4.0, 7.0, 2.0, 14.0, 3.0, 2.0, 8.0, 9.0, 20.0];
    let want = Tensor::from_slice([3, 4], &want).unwrap();
    let inputs = [x(), ints(&[3, 2], &[0, 1, 2, 1, 1, 2]), counted(&[3, 2, 2])];
    check("XlaScatter", &inputs, &attrs(blocks), &[want]);
    let g = one_node(false, "XlaScatter", &inputs, attrs(rows).to_vec());
    assert_eq!(run(&g, &["y"]).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn branches_and_loops_of_xla_call_functions() {
    let inputs = [Tensor::scalar(true), x(), x()];
    let attrs = [
        ("Tcond", DType::Bool.into()),
        ("Tin", vec![FLOAT; 2].into()),
        ("Tout", vec![FLOAT].into()),
        ("then_branch", func("add")),
        ("else_branch", func("max")),
    ];
    let g = one_node(false, "XlaIf", &inputs, attrs.to_vec());
    let sum = &run(&g, &["y"]).unwrap()[0];
    assert_eq!(sum.as_slice::<f32>().unwrap()[..2], [2.0, 10.0]);

    let cond = graph().op("y", "Less", &["a", "b"]).attr("T", FLOAT);
    let body = graph().op("y", "AddV2", &["a", "a"]).attr("T", FLOAT);
    let args = ["a: float", "b: float"];
    let g = graph()
        .function(function("goes_on", &args, &["r: bool"], &[("r", "y:z:0")], cond))
        .function(function(
            "twice",
            &args,
            &["r: float", "s: float"],
            &[("r", "y:z:0"), ("s", "b")],
            body,
        ));
    let g = g
        .constant("start", 3f32)
        .constant("limit", 40f32)
        .op("y", "XlaWhile", &["start", "limit"])
        .attr("T", vec![FLOAT; 2])
        .attr("cond", func("goes_on"))
        .attr("body", func("twice"))
        .build();
    assert_eq!(run(&g, &["y:0"]).unwrap()[0], Tensor::scalar(48f32));
}
