//! Datasets: input pipelines made of graph ops, so that they run where the graph does.

use crate::function::Function;
use crate::graph::Graph;
use crate::node::NodeBuilder;
use crate::output::{Operation, Output};
use crate::value::strings;
use ferroflow_core::{DType, PartialShape, Result, Tensor, ensure, err};
use ferroflow_graph::AttrList;

/// A sequence of elements, each of one or more tensors.
///
/// ```
/// # let mut catalog = ferroflow_graph::Catalog::new();
/// # ferroflow_ops::register(&mut catalog);
/// # let g = ferroflow_train::Graph::new(catalog.into());
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

/// Where one is in a dataset.
#[derive(Clone, Debug)]
pub struct DatasetIterator {
    resource: Output,
    types: Vec<DType>,
    shapes: Vec<PartialShape>,
    /// Goes to the beginning; to be run before the first element is taken, and to start over.
    pub initializer: Operation,
}

impl Graph {
    /// The rows of tensors that have as many each: element `i` is row `i` of all of them.
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

    /// The lines of text files.
    #[track_caller]
    pub fn text_line_dataset(&self, files: &[&str]) -> Dataset {
        self.file_dataset("TextLineDataset", files)
    }

    /// The records of TFRecord files.
    #[track_caller]
    pub fn tf_record_dataset(&self, files: &[&str]) -> Dataset {
        self.file_dataset("TFRecordDataset", files)
    }

    #[track_caller]
    fn file_dataset(&self, op: &str, files: &[&str]) -> Dataset {
        let files = self.constant_from(strings(files), Some("filenames"));
        let (compression, buffer) = (self.constant(""), self.constant(0i64));
        let variant = self.op(op).input(&files).input(&compression).input(&buffer).output();
        Dataset {
            graph: self.clone(),
            variant,
            types: vec![DType::String],
            shapes: vec![PartialShape::scalar()],
        }
    }

    /// Elements that a Rust iterator makes, all of which are taken now. Each is one tensor per
    /// component, of the same type and shape in all of them.
    #[track_caller]
    pub fn dataset_from(&self, elements: impl IntoIterator<Item = Vec<Tensor>>) -> Dataset {
        let columns = stack(elements)
            .map(|columns| columns.into_iter().map(|t| self.constant(t)).collect::<Vec<Output>>());
        let columns = self.or_fail(columns).unwrap_or_default();
        self.dataset(&columns)
    }

    /// Elements of several datasets side by side, until one of them ends.
    #[track_caller]
    pub fn zip_datasets(&self, datasets: &[Dataset]) -> Dataset {
        let variants: Vec<Output> = datasets.iter().map(|d| d.variant.clone()).collect();
        let types = datasets.iter().flat_map(|d| d.types.clone()).collect();
        let shapes = datasets.iter().flat_map(|d| d.shapes.clone()).collect();
        Dataset::new(self, types, shapes, self.op("ZipDataset").list(&variants))
    }
}

/// One tensor per component, with a row for each element.
fn stack(elements: impl IntoIterator<Item = Vec<Tensor>>) -> Result<Vec<Tensor>> {
    let rows: Vec<Vec<Tensor>> = elements.into_iter().collect();
    let first = rows.first().ok_or_else(|| err!(InvalidArgument, "a dataset without elements"))?;
    let mut columns = Vec::with_capacity(first.len());
    for (i, example) in first.iter().enumerate() {
        let mut dims = vec![rows.len()];
        dims.extend_from_slice(example.shape());
        let mut column = Tensor::alloc(example.dtype(), dims)?;
        let size = example.byte_len();
        for (row, bytes) in rows.iter().zip(column.bytes_mut()?.chunks_mut(size.max(1))) {
            let part = row.get(i).ok_or_else(|| {
                err!(
                    InvalidArgument,
                    "an element of {} tensors instead of {}",
                    row.len(),
                    first.len()
                )
            })?;
            ensure!(
                part.dtype() == example.dtype() && part.shape() == example.shape(),
                InvalidArgument,
                "an element is {}{} where the first is {}{}",
                part.dtype(),
                part.shape(),
                example.dtype(),
                example.shape()
            );
            bytes.copy_from_slice(part.bytes()?);
        }
        columns.push(column);
    }
    Ok(columns)
}

impl Dataset {
    #[track_caller]
    fn new(
        graph: &Graph,
        types: Vec<DType>,
        shapes: Vec<PartialShape>,
        op: NodeBuilder,
    ) -> Dataset {
        // The types of some follow from their inputs.
        let op = op
            .attr("output_shapes", shapes.clone())
            .attr_if_declared("output_types", AttrList::Types(types.clone()));
        Dataset { graph: graph.clone(), variant: op.output(), types, shapes }
    }

    /// The types of an element's tensors.
    pub fn types(&self) -> &[DType] {
        &self.types
    }

    /// What is known of the shapes of an element's tensors.
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

    /// The elements again and again: so many times, or without end.
    #[track_caller]
    pub fn repeat(&self, count: Option<i64>) -> Dataset {
        let count = self.number(count.unwrap_or(-1));
        self.same(self.op("RepeatDataset").input(&count))
    }

    /// The elements in a random order, drawn from a buffer of the next ones.
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

    /// The same, with the next elements made ahead of time.
    #[track_caller]
    pub fn prefetch(&self, count: i64) -> Dataset {
        let count = self.number(count);
        self.same(self.op("PrefetchDataset").input(&count))
    }

    /// The same, kept in memory when it was gone through once.
    #[track_caller]
    pub fn cache(&self) -> Dataset {
        let file = self.graph.constant("");
        self.same(self.op("CacheDataset").input(&file))
    }

    /// So many elements joined along a new first dimension; the last may be fewer.
    #[track_caller]
    pub fn batch(&self, size: i64) -> Dataset {
        self.batched(size, false)
    }

    /// [`Dataset::batch`] without a last one that is smaller.
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

    /// Each element through a function, which sees nothing but the element.
    #[track_caller]
    pub fn map(&self, build: impl FnOnce(&Graph, &[Output]) -> Vec<Output>) -> Dataset {
        let f = self.function("Dataset_map", build);
        let op = self.op("MapDataset").list(&[]).attr("f", f.reference());
        Dataset::new(&self.graph, f.result_types(), f.result_shapes(), op)
    }

    /// [`Dataset::map`] of several elements at a time; their order stays.
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

    /// A way through the elements.
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
    /// The next element, in every step in which it is used; `OutOfRange` after the last.
    #[track_caller]
    pub fn next(&self) -> Vec<Output> {
        let outputs = self
            .resource
            .graph()
            .op("IteratorGetNext")
            .input(&self.resource)
            .attr("output_types", AttrList::Types(self.types.clone()))
            .attr("output_shapes", self.shapes.clone())
            .outputs();
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
