//! Calls that mean harm: a recorded call, which is valid, with one thing in it driven to an
//! extreme. An index, a size, an attribute or a dimension is huge or negative, or a shape has no
//! elements and a huge dimension. Such calls pass most checks of an op and reach its kernel.

use crate::record::{RecordedAnswer, RecordedCase};
use ferroflow::Tensor;
use ferroflow::graph::{AttrValue, GraphDef};
use ferroflow_core::{DType, PartialShape, Shape};
use ferroflow_graph::AttrList;

/// A call, and the change that was made to it.
pub struct HostileCall {
    pub case: RecordedCase,
    pub change: String,
}

/// Numbers for indices, sizes and attributes.
const NUMBERS: [i64; 8] =
    [-1, 1 << 24, (1 << 31) - 2, (1 << 31) - 1, 1 << 40, 1 << 60, i64::MAX, i64::MIN];

/// A dimension of shapes that have another dimension of 0.
const LONG: usize = 1 << 40;

/// Elements of a value, and of a list in an attribute, that are changed one by one.
const ELEMENTS: usize = 3;

/// All changes of a call.
pub fn hostile_calls(case: &RecordedCase) -> Vec<HostileCall> {
    let mut calls = Vec::new();
    for (i, (name, value)) in case.feeds.iter().enumerate() {
        for (what, new) in hostile_values(value) {
            let mut feeds = case.feeds.clone();
            feeds[i].1 = new;
            let change = format!("{name} is {what}");
            calls.push(HostileCall { case: changed(case, case.graph.clone(), feeds), change });
        }
    }
    // Ops often want several values of the same shape.
    for (what, reshaped) in EMPTY {
        let feeds = case.feeds.iter().map(|(name, value)| {
            let new = reshaped(value.shape()).and_then(|shape| empty(value.dtype(), shape));
            (name.clone(), new.unwrap_or_else(|| value.clone()))
        });
        let change = format!("all values are {what}");
        let case = changed(case, case.graph.clone(), feeds.collect());
        calls.push(HostileCall { case, change });
    }
    for (at, node) in case.graph.nodes.iter().enumerate().filter(|(_, n)| n.op == case.op) {
        for (key, value) in node.attrs.iter() {
            for (what, new) in hostile_attrs(value) {
                let mut graph = case.graph.clone();
                graph.nodes[at].attrs.set(key, new);
                let change = format!("attr {key} is {what}");
                calls.push(HostileCall { case: changed(case, graph, case.feeds.clone()), change });
            }
        }
    }
    calls
}

fn changed(case: &RecordedCase, graph: GraphDef, feeds: Vec<(String, Tensor)>) -> RecordedCase {
    RecordedCase {
        op: case.op.clone(),
        dtype: case.dtype.clone(),
        types: case.types.clone(),
        index: case.index,
        spoiled: true,
        mode: case.mode,
        tolerance: case.tolerance,
        graph,
        feeds,
        fetches: case.fetches.clone(),
        targets: case.targets.clone(),
        theirs: RecordedAnswer::Crashed,
        raw: case.raw.clone(),
    }
}

type Reshaped = fn(&Shape) -> Option<Shape>;

/// Shapes without elements, of the same rank.
const EMPTY: [(&str, Reshaped); 3] = [
    ("empty, with long rows", |shape| {
        (shape.rank() > 1).then(|| with(shape, &[(0, 0), (shape.rank() - 1, LONG)]))
    }),
    ("many empty rows", |shape| {
        (shape.rank() > 1).then(|| with(shape, &[(0, LONG), (shape.rank() - 1, 0)]))
    }),
    ("empty", |shape| (shape.rank() > 0).then(|| with(shape, &[(0, 0)]))),
];

fn with(shape: &Shape, dims: &[(usize, usize)]) -> Shape {
    let mut new = shape.to_vec();
    dims.iter().for_each(|&(at, n)| new[at] = n);
    new.into_iter().collect()
}

fn empty(dtype: DType, shape: Shape) -> Option<Tensor> {
    match dtype {
        DType::String => Tensor::from_strings(shape, Vec::new()).ok(),
        _ => Tensor::zeros(dtype, shape).ok(),
    }
}

fn hostile_values(value: &Tensor) -> Vec<(String, Tensor)> {
    let mut all = Vec::new();
    for (what, reshaped) in EMPTY {
        let new = reshaped(value.shape()).and_then(|shape| empty(value.dtype(), shape));
        all.extend(new.map(|t| (what.to_string(), t)));
    }
    let put = |at: usize, bytes: &[u8]| {
        let mut new = value.deep_copy().ok()?;
        let to = new.bytes_mut().ok()?;
        to.get_mut(at * bytes.len()..)?.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(new)
    };
    let elements = value.elements().min(ELEMENTS);
    match value.dtype() {
        DType::Int32 | DType::Int64 | DType::UInt32 | DType::UInt64 => {
            let size = if matches!(value.dtype(), DType::Int32 | DType::UInt32) { 4 } else { 8 };
            for n in NUMBERS.iter().filter(|&&n| size == 8 || i32::try_from(n).is_ok()) {
                for at in 0..elements {
                    let new = put(at, &n.to_le_bytes()[..size]);
                    all.extend(new.map(|t| (format!("{n} at {at}"), t)));
                }
            }
        }
        DType::Float => {
            for x in [f32::NAN, f32::INFINITY, 1e9, 1e30] {
                let new = put(0, &x.to_le_bytes());
                all.extend(new.map(|t| (format!("{x} at 0"), t)));
            }
        }
        _ => {}
    }
    all
}

fn hostile_attrs(value: &AttrValue) -> Vec<(String, AttrValue)> {
    match value {
        AttrValue::Int(_) => NUMBERS.iter().map(|&n| (n.to_string(), AttrValue::Int(n))).collect(),
        AttrValue::Float(_) => {
            let numbers = [f32::NAN, f32::INFINITY, 1e30, -1e30];
            numbers.into_iter().map(|x| (x.to_string(), AttrValue::Float(x))).collect()
        }
        AttrValue::List(AttrList::Ints(list)) => {
            let places = (0..list.len().min(ELEMENTS + 1)).flat_map(|at| NUMBERS.map(|n| (at, n)));
            let change = |(at, n): (usize, i64)| {
                let mut new = list.clone();
                new[at] = n;
                (format!("{n} at {at}"), AttrValue::List(AttrList::Ints(new)))
            };
            places.map(change).collect()
        }
        AttrValue::Shape(_) => {
            let shapes = [vec![1 << 31, 1 << 31], vec![LONG, 0], vec![0, LONG], vec![1 << 30]];
            let shape = |dims: Vec<usize>| {
                let text = format!("{dims:?}");
                (text, AttrValue::Shape(PartialShape::new(dims.into_iter().map(Some))))
            };
            shapes.into_iter().map(shape).collect()
        }
        _ => Vec::new(),
    }
}
