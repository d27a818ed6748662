//! What nodes on GPUs compute for each element, row or column, as far as they can be fused.

use super::on_gpu::is_on_gpu;
use super::timely::Timely;
use crate::block_kernel::OperandShapes;
use crate::gpu_support::{FormulaStep, GpuFold, GpuRows, RowResult};
use crate::graph::{Endpoint, GraphIr, Node, NodeId};
use crate::passes::constant;
use ferroflow_core::{DType, PartialShape};

/// The shortest and the longest row that a fused kernel reduces: it keeps them in registers.
const SHORTEST_ROW: usize = 32;
const LONGEST_ROW: usize = 8192;
/// Values with fewer elements than this part of the whole cost nearly nothing to read.
pub(super) const SMALL_PART: usize = 8;

/// The formula of a node that may be fused.
pub(super) struct Formula {
    pub kind: FormulaKind,
    pub operands: OperandShapes,
    /// The dimensions that it reduces, if any.
    pub domain: Option<Domain>,
}

/// What a node computes.
pub(super) enum FormulaKind {
    /// A value for each element.
    Each(&'static str),
    /// Its input, repeated.
    Broadcast,
    /// A value for each row.
    Row { fold: GpuFold, keeps: bool },
    /// A value for each column.
    Columns { fold: GpuFold, keeps: bool },
    /// Formulas and reductions of its rows.
    Steps(fn(DType) -> Vec<FormulaStep>),
}

impl FormulaKind {
    pub fn is_broadcast(&self) -> bool {
        matches!(self, FormulaKind::Broadcast)
    }
}

impl Formula {
    /// A node may be fused if it is pure and on a GPU. One that reads a variable through a
    /// reference joins others if they read the same value ([`Timely::reads_alike`]).
    pub fn of(graph: &GraphIr, id: NodeId, node: &Node, timely: &Timely<'_>) -> Option<Formula> {
        let gpu = node.op.gpu.as_ref().filter(|gpu| gpu.takes(&node.attrs))?;
        let is_simple = node.op.is_pure()
            && node.output_types.len() == 1
            && !node.inputs.is_empty()
            && is_on_gpu(&node.device);
        if !is_simple {
            return None;
        }
        if let Some(formula) = &gpu.formula {
            let text = (formula.text)(&node.attrs, formula.given)?;
            let (kind, operands) = (FormulaKind::Each(text), formula.operands);
            return Some(Formula { kind, operands, domain: None });
        }
        let input = || timely.input_shape(id, 0);
        let (kind, domain) = match gpu.rows? {
            GpuRows::Broadcast => {
                let (from, to) = (input().known()?, timely.shape(Endpoint::new(id, 0)).known()?);
                let missing = to.rank().checked_sub(from.rank())?;
                let is_plain = node.output_types[0].dtype.is_floating();
                let fits = from.iter().zip(&to[missing..]).all(|(a, b)| a == b || *a == 1);
                return (fits && is_plain && is_constant(graph, node, 1)).then_some(Formula {
                    kind: FormulaKind::Broadcast,
                    operands: OperandShapes::Broadcast,
                    domain: None,
                });
            }
            GpuRows::Steps(steps) => (FormulaKind::Steps(steps), Domain::of(input())?),
            GpuRows::FoldColumns(fold, fits) => {
                let domain = Domain::of(input()).filter(|_| fits(&node.attrs))?;
                (FormulaKind::Columns { fold, keeps: false }, domain)
            }
            GpuRows::Fold(fold) => {
                let domain = Domain::of(input())?;
                let keeps = node.attrs.bool("keep_dims").ok()?;
                let axes = constant(graph.node(node.inputs.get(1)?.node))?.to_indices().ok()?;
                let rank = domain.shape.rank()? as i64;
                let mut axes: Vec<i64> =
                    axes.iter().map(|&a| if a < 0 { a + rank } else { a }).collect();
                axes.sort_unstable();
                let kind = match rank {
                    _ if axes == [rank - 1] => FormulaKind::Row { fold, keeps },
                    2.. if axes.iter().copied().eq(0..rank - 1) => {
                        FormulaKind::Columns { fold, keeps }
                    }
                    _ => return None,
                };
                (kind, domain)
            }
        };
        let operands = OperandShapes::Broadcast;
        Some(Formula { kind, operands, domain: Some(domain) })
    }

    /// The number of inputs that it computes with. Shapes and axes follow them.
    pub fn computed_inputs(&self) -> usize {
        match self.kind {
            FormulaKind::Each(_) => usize::MAX,
            _ => 1,
        }
    }

    /// The result of a group whose root this is.
    pub fn result(&self, domain: &Domain, shape: &PartialShape) -> Option<RowResult> {
        Some(match self.kind {
            FormulaKind::Row { keeps: true, .. } => RowResult::Rows,
            FormulaKind::Row { keeps: false, .. } => RowResult::RowsOnly,
            FormulaKind::Columns { keeps: true, .. } => RowResult::Columns,
            FormulaKind::Columns { keeps: false, .. } => RowResult::ColumnsOnly,
            _ => match domain.value(shape)? {
                RowValue::Element => RowResult::Elements,
                RowValue::Row if shape.rank() == domain.shape.rank() => RowResult::Rows,
                RowValue::Row => return None,
            },
        })
    }
}

fn is_constant(graph: &GraphIr, node: &Node, input: usize) -> bool {
    node.inputs.get(input).is_some_and(|e| constant(graph.node(e.node)).is_some())
}

/// The shape whose rows or columns are reduced.
#[derive(Clone, Debug)]
pub(super) struct Domain {
    pub shape: PartialShape,
    /// The last dimension.
    pub cols: usize,
}

/// A value within a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowValue {
    /// It differs within a row.
    Element,
    /// It is the same for all elements of a row.
    Row,
}

impl RowValue {
    pub fn is_same_in_row(self) -> bool {
        self == RowValue::Row
    }
}

impl Domain {
    /// The domain of a reduction of a value of this shape.
    fn of(shape: PartialShape) -> Option<Domain> {
        let cols = shape.dims()?.last().copied().flatten()?;
        (SHORTEST_ROW..=LONGEST_ROW).contains(&cols).then_some(Domain { shape, cols })
    }

    /// What two reductions have in common, if one kernel can do both.
    pub fn joined(&self, other: &Domain) -> Option<Domain> {
        let fits = self.cols == other.cols && self.shape.rank() == other.shape.rank();
        let shape = fits.then(|| self.shape.merge(&other.shape).ok())??;
        Some(Domain { shape, cols: self.cols })
    }

    /// What a value of this shape is, if it broadcasts to the domain.
    pub fn value(&self, shape: &PartialShape) -> Option<RowValue> {
        let (dims, own) = (shape.dims()?, self.shape.dims()?);
        let missing = own.len().checked_sub(dims.len())?;
        let fits = |(have, want): (&Option<usize>, &Option<usize>)| match (have, want) {
            (Some(1), _) => true,
            (Some(have), Some(want)) => have == want,
            // The kernel looks at the shapes that it gets.
            _ => true,
        };
        if !dims.iter().zip(&own[missing..]).all(fits) {
            return None;
        }
        match dims.last() {
            None | Some(Some(1)) => Some(RowValue::Row),
            Some(Some(last)) if *last == self.cols => Some(RowValue::Element),
            _ => None,
        }
    }

    /// Whether a value of this shape is a considerable part of the domain.
    pub fn is_large(&self, shape: &PartialShape) -> bool {
        match (shape.elements(), self.shape.elements()) {
            (Some(n), Some(all)) => n > all / SMALL_PART,
            _ => self.value(shape) != Some(RowValue::Row) && shape.rank() == self.shape.rank(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[i64]) -> PartialShape {
        PartialShape::from_i64s(dims).unwrap()
    }

    #[test]
    fn values_broadcast_to_the_rows_of_a_domain() {
        let domain = Domain::of(shape(&[-1, 4, 64])).unwrap();
        let value = |dims: &[i64]| domain.value(&shape(dims));
        assert_eq!(value(&[]), Some(RowValue::Row));
        assert_eq!(value(&[64]), Some(RowValue::Element));
        assert_eq!(value(&[4, 1]), Some(RowValue::Row));
        assert_eq!(value(&[7, 4, 64]), Some(RowValue::Element));
        assert_eq!(value(&[4]), None);
        assert_eq!(value(&[5, 64]), None);
        assert_eq!(value(&[2, 3, 4, 64]), None);
        assert_eq!(value(&[-1]), None);
    }

    #[test]
    fn only_rows_that_fit_into_registers_are_fused() {
        assert!(Domain::of(shape(&[8, 31])).is_none());
        assert!(Domain::of(shape(&[8, 8192])).is_some());
        assert!(Domain::of(shape(&[8, 8193])).is_none());
        assert!(Domain::of(shape(&[8, -1])).is_none());
    }

    #[test]
    fn statistics_of_rows_are_small() {
        let domain = Domain::of(shape(&[128, 64])).unwrap();
        assert!(domain.is_large(&shape(&[128, 64])));
        assert!(!domain.is_large(&shape(&[128, 1])));
        assert!(!domain.is_large(&shape(&[64])));
    }
}
