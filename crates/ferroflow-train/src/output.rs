//! Handles of tensors and nodes, and arithmetic on them.

use crate::graph::Graph;
use crate::value::IntoOutput;
use ferroflow_core::{DType, PartialShape};
use ferroflow_graph::{Endpoint, NodeId};
use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

/// A tensor of a graph under construction: a cheap handle. Arithmetic on handles adds nodes.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// let x = g.placeholder::<f32>("x", [None, Some(4)]);
/// let y = (&x * 2.0 + 1.0).relu().sum(&[1]);
/// assert_eq!((y.name().as_str(), y.shape().to_string().as_str()), ("Sum:0", "[?]"));
/// ```
#[derive(Clone)]
pub struct Output {
    pub(crate) graph: Graph,
    /// `None` if its node is invalid.
    pub(crate) endpoint: Option<Endpoint>,
}

/// A node of a graph under construction: a cheap handle.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// let v = g.variable("v", 1.0);
/// let double = v.assign(&v * 2.0);
/// let after = g.control_dependencies(&[double], || v.read());
/// assert!(after.name().starts_with("ReadVariableOp"));
/// ```
#[derive(Clone)]
pub struct Operation {
    pub(crate) graph: Graph,
    pub(crate) id: Option<NodeId>,
}

impl Output {
    pub(crate) fn new(graph: &Graph, endpoint: Option<Endpoint>) -> Output {
        Output { graph: graph.clone(), endpoint }
    }

    /// Its graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Its name, `node:k`; empty if its node is invalid.
    pub fn name(&self) -> String {
        let state = self.graph.state();
        // Every step calls this; `concat` takes a tenth of the time of `format!`.
        let name = |e: Endpoint| match (&state.ir.node(e.node).name, e.slot) {
            (name, 0) => [name, ":0"].concat(),
            (name, slot) => format!("{name}:{slot}"),
        };
        self.endpoint.map(name).unwrap_or_default()
    }

    /// The node it is an output of.
    pub fn operation(&self) -> Operation {
        Operation::new(&self.graph, self.endpoint.map(|e| e.node))
    }

    /// The type of its elements; `float` if its node is invalid.
    pub fn dtype(&self) -> DType {
        self.endpoint.map_or(DType::Float, |e| self.graph.state().ir.type_of(e).dtype)
    }

    /// Its shape, as far as it is known.
    pub fn shape(&self) -> PartialShape {
        self.endpoint.map(|e| self.graph.state().shape(e)).unwrap_or_default()
    }

    /// The requested device of its node.
    pub fn device(&self) -> String {
        self.operation().device()
    }

    /// Merges `shape` into the known shape.
    #[track_caller]
    pub fn set_shape(&self, shape: impl crate::value::IntoShape) -> &Output {
        let merged = self.shape().merge(&shape.into_shape());
        if let (Some(shape), Some(e)) = (self.graph.or_fail(merged), self.endpoint) {
            let mut state = self.graph.state();
            if let Some(slot) =
                state.shapes.get_mut(e.node.index()).and_then(|s| s.get_mut(e.slot as usize))
            {
                *slot = shape;
            }
        }
        self
    }

    /// A node of `op` with the inputs `self` and `other`; a number takes the type of `self`.
    #[track_caller]
    pub(crate) fn binary(&self, op: &str, other: impl IntoOutput) -> Output {
        let other = other.into_output(&self.graph, Some(self.dtype()));
        self.graph.op(op).input(self).input(&other).output()
    }

    #[track_caller]
    pub(crate) fn unary(&self, op: &str) -> Output {
        self.graph.op(op).input(self).output()
    }
}

impl Operation {
    pub(crate) fn new(graph: &Graph, id: Option<NodeId>) -> Operation {
        Operation { graph: graph.clone(), id }
    }

    /// Its graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Its name; empty if it is invalid.
    pub fn name(&self) -> String {
        let state = self.graph.state();
        self.id.map(|id| state.ir.node(id).name.clone()).unwrap_or_default()
    }

    /// Its requested device.
    pub fn device(&self) -> String {
        let state = self.graph.state();
        self.id.map(|id| state.ir.node(id).device.clone()).unwrap_or_default()
    }

    /// Output number `slot`.
    pub fn output(&self, slot: usize) -> Output {
        let outputs = |id: NodeId| self.graph.state().ir.node(id).output_types.len();
        let endpoint = self.id.filter(|&id| slot < outputs(id));
        Output::new(&self.graph, endpoint.map(|id| Endpoint::new(id, slot)))
    }
}

impl From<&Output> for Operation {
    fn from(output: &Output) -> Operation {
        output.operation()
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.name(), self.dtype(), self.shape())
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// One row per operator: implements it for all mixes of handles, references and numbers.
macro_rules! operators {
    ($($trait:ident $method:ident $op:expr;)*) => {$(
        operators! { @left $trait $method $op; Output; }
        operators! { @left $trait $method $op; &Output; }
        operators! { @left $trait $method $op; &crate::Variable; }
        operators! { @number $trait $method $op; f32; }
        operators! { @number $trait $method $op; i32; }
    )*};
    (@left $trait:ident $method:ident $op:expr; $left:ty;) => {
        impl $trait<Output> for $left {
            type Output = Output;
            #[track_caller]
            fn $method(self, right: Output) -> Output {
                self.binary($op(self.dtype()), &right)
            }
        }
        impl $trait<&Output> for $left {
            type Output = Output;
            #[track_caller]
            fn $method(self, right: &Output) -> Output {
                self.binary($op(self.dtype()), right)
            }
        }
        impl $trait<&crate::Variable> for $left {
            type Output = Output;
            #[track_caller]
            fn $method(self, right: &crate::Variable) -> Output {
                self.binary($op(self.dtype()), &**right)
            }
        }
    };
    (@number $trait:ident $method:ident $op:expr; $number:ty;) => {
        operators! { @right $trait $method $op; $number; Output; }
        operators! { @right $trait $method $op; $number; &Output; }
        operators! { @right $trait $method $op; $number; &crate::Variable; }
    };
    (@right $trait:ident $method:ident $op:expr; $number:ty; $tensor:ty;) => {
        impl $trait<$number> for $tensor {
            type Output = Output;
            #[track_caller]
            fn $method(self, right: $number) -> Output {
                self.binary($op(self.dtype()), right)
            }
        }
        impl $trait<$tensor> for $number {
            type Output = Output;
            #[track_caller]
            fn $method(self, right: $tensor) -> Output {
                let left = self.into_output(right.graph(), Some(right.dtype()));
                left.binary($op(right.dtype()), right)
            }
        }
    };
}

operators! {
    Add add |t| if t == DType::String { "Add" } else { "AddV2" };
    Sub sub |_| "Sub";
    Mul mul |_| "Mul";
    Div div |t: DType| if t.is_integer() { "FloorDiv" } else { "RealDiv" };
    Rem rem |_| "FloorMod";
}

impl Neg for Output {
    type Output = Output;
    #[track_caller]
    fn neg(self) -> Output {
        self.unary("Neg")
    }
}

impl Neg for &Output {
    type Output = Output;
    #[track_caller]
    fn neg(self) -> Output {
        self.unary("Neg")
    }
}
