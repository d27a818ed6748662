//! Datasets: input pipelines made of graph ops, so that they run where the graph does.

mod feed;
mod nested;
mod sources;

pub use feed::{DatasetFeeder, Feeding};
pub use sources::{Csv, CsvColumn};

use crate::function::Function;
use crate::graph::Graph;
use crate::node::NodeBuilder;
use crate::output::{Operation, Output};
use ferroflow_core::{DType, PartialShape, Result, Tensor, ensure};
use ferroflow_graph::AttrList;

/// A sequence of elements, each of one or more tensors.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// let squares = g.range_dataset(0, 100).map(|_, x| vec![&x[0] * &x[0]]);
/// let batches = squares.shuffle(20, None).repeat(None).batch(8).prefetch(2);
/// let next = batches.iterator().next();
/// assert_eq!(next[0].shape().to_string(), "[?]");
/// ```
#[derive(Clone, Debug)]
pub struct Dataset {
    graph: Graph,
    variant: Output,
    types: Vec<DType>,
    shapes: Vec<PartialShape>,
}

/// An iterator over a dataset.
#[derive(Clone, Debug)]
pub struct DatasetIterator {
    resource: Output,
    types: Vec<DType>,
    shapes: Vec<PartialShape>,
    /// Initializes the iterator; run it before the first element, and to start over.
    pub initializer: Operation,
}

impl Graph {
    /// Slices tensors along the first dimension: element `i` is row `i` of all of them.
    #[track_caller]
    pub fn dataset(&self, tensors: &[Output]) -> Dataset {
        let types = tensors.iter().map(Output::dtype).collect();
        let row = |t: &Output| match t.shape().dims() {
            Some([_, row @ ..]) => PartialShape::new(row.iter().copied()),
            _ => PartialShape::unknown(),
        };
        let shapes = tensors.iter().map(row).collect();
        let op = self.op("TensorSliceDataset").list(tensors);
        Dataset::new(self, types, shapes, op)
    }

    /// The numbers from `start` up to `stop`.
    #[track_caller]
    pub fn range_dataset(&self, start: i64, stop: i64) -> Dataset {
        let [start, stop, step] = [start, stop, 1].map(|n| self.constant(n));
        let op = self.op("RangeDataset").input(&start).input(&stop).input(&step);
        Dataset::new(self, vec![DType::Int64], vec![PartialShape::scalar()], op)
    }

    /// Zips several datasets, until one of them ends.
    #[track_caller]
    pub fn zip_datasets(&self, datasets: &[Dataset]) -> Dataset {
        let variants: Vec<Output> = datasets.iter().map(|d| d.variant.clone()).collect();
        let types = datasets.iter().flat_map(|d| d.types.clone()).collect();
        let shapes = datasets.iter().flat_map(|d| d.shapes.clone()).collect();
        Dataset::new(self, types, shapes, self.op("ZipDataset").list(&variants))
    }
}

impl Dataset {
    #[track_caller]
    fn new(
        graph: &Graph,
        types: Vec<DType>,
        shapes: Vec<PartialShape>,
        op: NodeBuilder,
    ) -> Dataset {
        // The types of some datasets follow from their inputs.
        let op = op
            .attr("output_shapes", shapes.clone())
            .attr_if_declared("output_types", AttrList::Types(types.clone()));
        Dataset { graph: graph.clone(), variant: op.output(), types, shapes }
    }

    /// Its graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The types of an element's tensors.
    pub fn types(&self) -> &[DType] {
        &self.types
    }

    /// The known shapes of an element's tensors.
    pub fn shapes(&self) -> &[PartialShape] {
        &self.shapes
    }

    fn op(&self, op: &str) -> NodeBuilder {
        self.graph.op(op).input(&self.variant)
    }

    #[track_caller]
    fn number(&self, n: i64) -> Output {
        self.graph.constant(n)
    }

    #[track_caller]
    fn same(&self, op: NodeBuilder) -> Dataset {
        Dataset::new(&self.graph, self.types.clone(), self.shapes.clone(), op)
    }

    /// Repeats the elements `count` times, or forever.
    #[track_caller]
    pub fn repeat(&self, count: Option<i64>) -> Dataset {
        let count = self.number(count.unwrap_or(-1));
        self.same(self.op("RepeatDataset").input(&count))
    }

    /// Shuffles the elements with a buffer of the next ones.
    #[track_caller]
    pub fn shuffle(&self, buffer: i64, seed: Option<i64>) -> Dataset {
        let (seed, seed2) = self.graph.seeds(seed);
        let [buffer, seed, seed2] = [buffer, seed, seed2].map(|n| self.number(n));
        self.same(self.op("ShuffleDataset").input(&buffer).input(&seed).input(&seed2))
    }

    /// The first elements.
    #[track_caller]
    pub fn take(&self, count: i64) -> Dataset {
        let count = self.number(count);
        self.same(self.op("TakeDataset").input(&count))
    }

    /// All but the first elements.
    #[track_caller]
    pub fn skip(&self, count: i64) -> Dataset {
        let count = self.number(count);
        self.same(self.op("SkipDataset").input(&count))
    }

    /// Every `shards`-th element, from number `index` on.
    #[track_caller]
    pub fn shard(&self, shards: i64, index: i64) -> Dataset {
        let (shards, index) = (self.number(shards), self.number(index));
        self.same(self.op("ShardDataset").input(&shards).input(&index))
    }

    /// Prefetches the next elements.
    #[track_caller]
    pub fn prefetch(&self, count: i64) -> Dataset {
        let count = self.number(count);
        self.same(self.op("PrefetchDataset").input(&count))
    }

    /// Caches the elements in memory in the first epoch.
    #[track_caller]
    pub fn cache(&self) -> Dataset {
        self.cache_in("")
    }

    /// Caches the elements in files of this name in the first epoch; in memory if it is empty.
    #[track_caller]
    pub fn cache_in(&self, file: &str) -> Dataset {
        let file = self.graph.constant(file);
        self.same(self.op("CacheDataset").input(&file))
    }

    /// Concatenates another dataset of the same types.
    #[track_caller]
    pub fn concatenate(&self, other: &Dataset) -> Dataset {
        let shapes = self.shapes.iter().zip(&other.shapes);
        let shapes = shapes.map(|(a, b)| crate::cond::in_common(a, b)).collect();
        let op = self.op("ConcatenateDataset").input(&other.variant);
        Dataset::new(&self.graph, self.types.clone(), shapes, op)
    }

    /// Splits the elements into rows: the inverse of [`Dataset::batch`].
    #[track_caller]
    pub fn unbatch(&self) -> Dataset {
        let row = |s: &PartialShape| match s.dims() {
            Some([_, row @ ..]) => PartialShape::new(row.iter().copied()),
            _ => PartialShape::unknown(),
        };
        let shapes = self.shapes.iter().map(row).collect();
        Dataset::new(&self.graph, self.types.clone(), shapes, self.op("UnbatchDataset"))
    }

    /// Batches elements of different shapes: pads the shorter ones to the longest with zeros or
    /// empty strings. The last batch may be smaller.
    #[track_caller]
    pub fn padded_batch(&self, size: i64) -> Dataset {
        self.padded_batch_to(size, &self.shapes.clone(), &[])
    }

    /// [`Dataset::padded_batch`] to these shapes, where unknown dimensions take the longest of the
    /// batch. `values` has one padding value per tensor of an element, or none for zeros.
    #[track_caller]
    pub fn padded_batch_to(
        &self,
        size: i64,
        shapes: &[PartialShape],
        padding: &[Tensor],
    ) -> Dataset {
        let g = &self.graph;
        let checked = self.check_padding(shapes, padding);
        g.or_fail(checked);
        let mut targets = Vec::with_capacity(shapes.len());
        for shape in shapes {
            let dims = shape.dims().unwrap_or_default().iter();
            let dims: Vec<i64> = dims.map(|d| d.map_or(-1, |d| d as i64)).collect();
            targets.push(g.constant(dims));
        }
        let mut values = Vec::with_capacity(self.types.len());
        for (i, dtype) in self.types.iter().enumerate() {
            let value = match (padding.get(i), dtype) {
                (Some(value), _) => Ok(value.clone()),
                (None, DType::String) => Ok(Tensor::string("")),
                (None, dtype) => Tensor::zeros(*dtype, ferroflow_core::Shape::scalar()),
            };
            values.push(g.constant_from(value, None));
        }
        let batched = |s: &PartialShape| {
            PartialShape::new(
                [None].into_iter().chain(s.dims().unwrap_or_default().iter().copied()),
            )
        };
        let batched = shapes.iter().map(batched).collect();
        let (size, drop) = (self.number(size), g.constant(false));
        let op = self.op("PaddedBatchDatasetV2").input(&size).list(&targets).list(&values);
        Dataset::new(g, self.types.clone(), batched, op.input(&drop))
    }

    fn check_padding(&self, shapes: &[PartialShape], padding: &[Tensor]) -> Result<()> {
        let n = self.types.len();
        ensure!(
            shapes.len() == n && (padding.is_empty() || padding.len() == n),
            InvalidArgument,
            "{} shapes and {} values for padding elements of {n} tensors",
            shapes.len(),
            padding.len()
        );
        let is_known = shapes.iter().all(|s| s.rank().is_some());
        ensure!(is_known, InvalidArgument, "padding needs to know how many dimensions there are");
        Ok(())
    }

    /// Batches elements along a new first dimension; the last batch may be smaller.
    #[track_caller]
    pub fn batch(&self, size: i64) -> Dataset {
        self.batched(size, false)
    }

    /// [`Dataset::batch`] that drops a smaller last batch.
    #[track_caller]
    pub fn batch_exact(&self, size: i64) -> Dataset {
        self.batched(size, true)
    }

    #[track_caller]
    fn batched(&self, size: i64, drop_remainder: bool) -> Dataset {
        let rows = usize::try_from(size).ok().filter(|_| drop_remainder);
        let shape = |s: &PartialShape| match s.dims() {
            Some(dims) => PartialShape::new([rows].into_iter().chain(dims.iter().copied())),
            None => PartialShape::unknown(),
        };
        let shapes = self.shapes.iter().map(shape).collect();
        let (size, drop) = (self.number(size), self.graph.constant(drop_remainder));
        let op = self.op("BatchDatasetV2").input(&size).input(&drop);
        Dataset::new(&self.graph, self.types.clone(), shapes, op)
    }

    #[track_caller]
    fn function(
        &self,
        name: &str,
        build: impl FnOnce(&Graph, &[Output]) -> Vec<Output>,
    ) -> Function {
        let arguments: Vec<(DType, PartialShape)> =
            self.types.iter().copied().zip(self.shapes.iter().cloned()).collect();
        self.graph.function(name, &arguments, build)
    }

    /// Maps each element through a function, which sees only the element.
    #[track_caller]
    pub fn map(&self, build: impl FnOnce(&Graph, &[Output]) -> Vec<Output>) -> Dataset {
        let f = self.function("Dataset_map", build);
        let op = self.op("MapDataset").list(&[]).attr("f", f.reference());
        Dataset::new(&self.graph, f.result_types(), f.result_shapes(), op)
    }

    /// [`Dataset::map`] with several elements in parallel; keeps their order.
    #[track_caller]
    pub fn parallel_map(
        &self,
        calls: i64,
        build: impl FnOnce(&Graph, &[Output]) -> Vec<Output>,
    ) -> Dataset {
        let f = self.function("Dataset_map", build);
        let calls = self.number(calls);
        let op = self.op("ParallelMapDatasetV2").list(&[]).input(&calls);
        let op = op.attr("f", f.reference());
        Dataset::new(&self.graph, f.result_types(), f.result_shapes(), op)
    }

    /// The elements for which a function returns true.
    #[track_caller]
    pub fn filter(&self, build: impl FnOnce(&Graph, &[Output]) -> Output) -> Dataset {
        let f = self.function("Dataset_filter", |g, x| vec![build(g, x)]);
        self.same(self.op("FilterDataset").list(&[]).attr("predicate", f.reference()))
    }

    /// An iterator over the elements.
    #[track_caller]
    pub fn iterator(&self) -> DatasetIterator {
        let resource = self
            .graph
            .op("IteratorV2")
            .attr("shared_name", "")
            .attr("container", "")
            .attr("output_types", AttrList::Types(self.types.clone()))
            .attr("output_shapes", self.shapes.clone())
            .output();
        let initializer =
            self.graph.op("MakeIterator").input(&self.variant).input(&resource).operation();
        let (types, shapes) = (self.types.clone(), self.shapes.clone());
        DatasetIterator { resource, types, shapes, initializer }
    }
}

impl DatasetIterator {
    /// The next element in every step that uses it; `OutOfRange` after the last.
    #[track_caller]
    pub fn next(&self) -> Vec<Output> {
        let outputs = self
            .resource
            .graph()
            .op("IteratorGetNext")
            .input(&self.resource)
            .attr("output_types", AttrList::Types(self.types.clone()))
            .attr("output_shapes", self.shapes.clone())
            .count_of_outputs(self.types.len());
        for (output, shape) in outputs.iter().zip(&self.shapes) {
            output.set_shape(shape);
        }
        outputs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{graph, session};
    use ferroflow_core::Code;

    /// All elements of a dataset.
    pub(super) fn all(g: &Graph, data: &Dataset) -> Vec<Vec<Tensor>> {
        let iterator = data.iterator();
        let next = iterator.next();
        let s = session(g).unwrap();
        s.run(&iterator.initializer).unwrap();
        let mut elements = Vec::new();
        loop {
            match s.run(&next) {
                Ok(element) => elements.push(element),
                Err(e) if e.code() == Code::OutOfRange => return elements,
                Err(e) => panic!("{e}"),
            }
        }
    }

    fn numbers(g: &Graph, data: &Dataset) -> Vec<i64> {
        let element = |e: Vec<Tensor>| e[0].as_slice::<i64>().unwrap().to_vec();
        all(g, data).into_iter().flat_map(element).collect()
    }

    #[test]
    fn datasets_are_joined_nested_and_taken_apart() {
        let g = graph();
        let (few, more) = (g.range_dataset(0, 3), g.range_dataset(10, 12));
        assert_eq!(numbers(&g, &few.concatenate(&more).cache()), [0, 1, 2, 10, 11]);
        assert_eq!(numbers(&g, &g.range_dataset(0, 5).batch(3).unbatch()), [0, 1, 2, 3, 4]);
        let copies = |g: &Graph, x: &[Output]| {
            let rows = g.pack(&[x[0].clone(), &x[0] + 100.0], 0);
            g.dataset(&[rows])
        };
        assert_eq!(numbers(&g, &few.flat_map(copies)), [0, 100, 1, 101, 2, 102]);
        assert_eq!(numbers(&g, &few.interleave(2, 1, copies)), [0, 1, 100, 101, 2, 102]);
        let parallel = few.parallel_interleave(2, 1, 2, copies);
        assert_eq!(numbers(&g, &parallel), [0, 1, 100, 101, 2, 102]);
        let squares = few.parallel_map(2, |_, x| vec![x[0].square()]);
        assert_eq!(numbers(&g, &squares), [0, 1, 4]);
        let both = all(&g, &g.zip_datasets(&[few.clone(), more.clone()]));
        assert_eq!(
            (both.len(), both[1].clone()),
            (2, vec![Tensor::scalar(1i64), Tensor::scalar(11i64)])
        );
    }

    #[test]
    fn elements_go_through_the_pipeline() {
        let g = graph();
        let squares = g.range_dataset(0, 10).map(|_, x| vec![&x[0] * &x[0]]);
        let odd = squares.filter(|_, x| (&x[0] % 2.0).equal(1)).repeat(Some(2)).batch(3);
        let iterator = odd.iterator();
        let next = iterator.next();
        let s = session(&g).unwrap();
        s.run(&iterator.initializer).unwrap();
        let mut seen = Vec::new();
        let end = loop {
            match s.run(&next[0]) {
                Ok(t) => seen.push(t.as_slice::<i64>().unwrap().to_vec()),
                Err(e) => break e,
            }
        };
        assert_eq!(end.code(), Code::OutOfRange);
        let expected: [&[i64]; 4] = [&[1, 9, 25], &[49, 81, 1], &[9, 25, 49], &[81]];
        assert_eq!(seen, expected);
    }

    #[test]
    fn rust_values_become_elements() {
        let g = graph();
        let element = |i: i32| vec![Tensor::scalar(i), Tensor::vector(&[i as f32, 0.5])];
        let data = g.dataset_from((0..4).map(element)).shard(2, 1);
        let iterator = data.iterator();
        let next = iterator.next();
        assert_eq!(next[1].shape().to_string(), "[2]");
        let s = session(&g).unwrap();
        s.run(&iterator.initializer).unwrap();
        let (a, b) = s.run((&next[0], &next[1])).unwrap();
        assert_eq!(a.scalar_value::<i32>().unwrap(), 1);
        assert_eq!(b.as_slice::<f32>().unwrap(), [1.0, 0.5]);
    }
}
