//! Datasets made from the elements of a dataset: flat_map and interleave.

use super::Dataset;
use crate::function::Function;
use crate::graph::Graph;
use crate::node::NodeBuilder;
use crate::output::Output;
use ferroflow_core::{DType, PartialShape};

/// A function from an element to a dataset, with the types of that dataset.
struct ElementFunction {
    function: Function,
    types: Vec<DType>,
    shapes: Vec<PartialShape>,
}

impl Dataset {
    #[track_caller]
    fn inner(
        &self,
        name: &str,
        build: impl FnOnce(&Graph, &[Output]) -> Dataset,
    ) -> ElementFunction {
        let (mut types, mut shapes) = (Vec::new(), Vec::new());
        let function = self.function(name, |g, element| {
            let made = build(g, element);
            (types, shapes) = (made.types, made.shapes);
            vec![made.variant]
        });
        ElementFunction { function, types, shapes }
    }

    #[track_caller]
    fn nested(&self, op: NodeBuilder, inner: ElementFunction) -> Dataset {
        let op = op.attr("f", inner.function.reference());
        Dataset::new(&self.graph, inner.types, inner.shapes, op)
    }

    /// Maps each element to a dataset and concatenates these.
    #[track_caller]
    pub fn flat_map(&self, build: impl FnOnce(&Graph, &[Output]) -> Dataset) -> Dataset {
        let inner = self.inner("Dataset_flat_map", build);
        self.nested(self.op("FlatMapDataset").list(&[]), inner)
    }

    /// Maps each element to a dataset, such as one per file, and takes `block` elements at a time
    /// from each of `cycle` datasets in turn.
    #[track_caller]
    pub fn interleave(
        &self,
        cycle: i64,
        block: i64,
        build: impl FnOnce(&Graph, &[Output]) -> Dataset,
    ) -> Dataset {
        let inner = self.inner("Dataset_interleave", build);
        let (cycle, block) = (self.number(cycle), self.number(block));
        let op = self.op("InterleaveDataset").list(&[]).input(&cycle).input(&block);
        self.nested(op, inner)
    }

    /// [`Dataset::interleave`] with this many datasets in parallel; keeps the order.
    #[track_caller]
    pub fn parallel_interleave(
        &self,
        cycle: i64,
        block: i64,
        calls: i64,
        build: impl FnOnce(&Graph, &[Output]) -> Dataset,
    ) -> Dataset {
        let inner = self.inner("Dataset_interleave", build);
        let [cycle, block, calls] = [cycle, block, calls].map(|n| self.number(n));
        // -1 lets the op choose the buffer size.
        let [ahead, inputs] = [-1, 0].map(|n| self.number(n));
        let op = self.op("ParallelInterleaveDatasetV4").list(&[]).input(&cycle).input(&block);
        self.nested(op.input(&ahead).input(&inputs).input(&calls), inner)
    }
}
