//! Dense columns: numeric, bucketized, one-hot, and embedding columns.

use super::categorical::Categorical;
use super::features::{Feature, Features, SparseOutput};
use super::matrix;
use crate::graph::Graph;
use crate::init;
use crate::output::Output;
use crate::variable::Variable;
use crate::variable_scope::Reuse;
use ferroflow_core::{DType, PartialShape, Result, bail};

/// A numeric column.
#[derive(Clone, Debug)]
pub struct Numeric {
    key: String,
    width: usize,
    default: Option<f32>,
    normalizer: Option<fn(&Output) -> Output>,
}

/// A numeric column with one number per example.
pub fn numeric(key: &str) -> Numeric {
    Numeric { key: key.into(), width: 1, default: None, normalizer: None }
}

impl Numeric {
    /// Number of values per example.
    #[must_use]
    pub fn width(mut self, width: usize) -> Numeric {
        self.width = width;
        self
    }

    /// Default for values that a serialized example lacks.
    #[must_use]
    pub fn default_value(mut self, value: f32) -> Numeric {
        self.default = Some(value);
        self
    }

    /// A normalizer that is applied first.
    #[must_use]
    pub fn normalizer(mut self, normalizer: fn(&Output) -> Output) -> Numeric {
        self.normalizer = Some(normalizer);
        self
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn parsed(&self) -> (usize, Option<f32>) {
        (self.width, self.default)
    }

    #[track_caller]
    fn dense(&self, features: &Features) -> Result<Output> {
        let tensor = match features.get(&self.key)? {
            Feature::Dense(tensor) => tensor,
            Feature::Sparse(_) => bail!(
                InvalidArgument,
                "feature '{}' has another number of values for each example; a numeric column \
                 needs {} of each",
                self.key,
                self.width
            ),
        };
        let x = matrix(tensor, self.width)?;
        Ok(self.normalizer.map_or(x.clone(), |f| f(&x)))
    }
}

/// A bucketized column.
#[derive(Clone, Debug)]
pub struct Bucketized {
    source: Numeric,
    boundaries: Vec<f32>,
}

/// Maps the numbers of a column to buckets: below the first boundary, from the first up to the
/// second, and so on. Usable as a dense (one-hot) and as a categorical column.
pub fn bucketized(source: &Numeric, boundaries: &[f32]) -> Bucketized {
    Bucketized { source: source.clone(), boundaries: boundaries.to_vec() }
}

impl Bucketized {
    /// Its name.
    pub fn name(&self) -> String {
        format!("{}_bucketized", self.source.key)
    }

    pub(crate) fn source(&self) -> &Numeric {
        &self.source
    }

    pub(crate) fn width(&self) -> usize {
        (self.boundaries.len() + 1).saturating_mul(self.source.width)
    }

    /// The bucket of each number.
    #[track_caller]
    fn buckets(&self, features: &Features) -> Result<Output> {
        let x = self.source.dense(features)?;
        let boundaries = ferroflow_graph::AttrList::Floats(self.boundaries.clone());
        Ok(x.graph().op("Bucketize").input(&x).attr("boundaries", boundaries).output())
    }

    #[track_caller]
    fn dense(&self, features: &Features) -> Result<Output> {
        let depth = i32::try_from(self.boundaries.len() + 1).unwrap_or(i32::MAX);
        Ok(self.buckets(features)?.one_hot(depth).reshape([None, Some(self.width())]))
    }

    /// The buckets as categories; the buckets of the second number follow those of the first.
    #[track_caller]
    pub(crate) fn ids(&self, graph: &Graph, features: &Features) -> Result<SparseOutput> {
        let buckets = self.buckets(features)?.cast(DType::Int64);
        let width = self.source.width;
        let each = (self.boundaries.len() + 1) as i64;
        let first: Vec<i64> = (0..width as i64).map(|i| i * each).collect();
        let values = (&buckets + graph.constant(first)).reshape([None]);
        let everywhere = graph.op("Where").input(&buckets.greater_equal(0)).output();
        everywhere.set_shape([None, Some(2)]);
        let shape = graph.op("Shape").input(&buckets).attr("out_type", DType::Int64).output();
        Ok(SparseOutput { indices: everywhere, values, shape })
    }
}

/// Combines several rows of an example into one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Combiner {
    /// The mean.
    #[default]
    Mean,
    /// The sum.
    Sum,
    /// The sum divided by the square root of their number.
    Sqrtn,
}

/// An embedding column: a trained row per category.
#[derive(Clone, Debug)]
pub struct Embedding {
    of: Categorical,
    width: usize,
    combiner: Combiner,
}

/// An embedding column with trained rows of `width` numbers, one per category.
pub fn embedding(of: &Categorical, width: usize) -> Embedding {
    Embedding { of: of.clone(), width, combiner: Combiner::Mean }
}

impl Embedding {
    /// The combiner of several rows of an example; the default is the mean.
    #[must_use]
    pub fn combiner(mut self, combiner: Combiner) -> Embedding {
        self.combiner = combiner;
        self
    }
}

/// A dense column: one or several numbers per example.
#[derive(Clone, Debug)]
pub enum DenseColumn {
    /// See [`numeric`].
    Numeric(Numeric),
    /// See [`bucketized`].
    Bucketized(Bucketized),
    /// The count of each category.
    Indicator(Categorical),
    /// See [`embedding`].
    Embedding(Embedding),
}

/// The count of each category: one-hot if an example has one category.
pub fn indicator(of: &Categorical) -> DenseColumn {
    DenseColumn::Indicator(of.clone())
}

impl From<Numeric> for DenseColumn {
    fn from(column: Numeric) -> DenseColumn {
        DenseColumn::Numeric(column)
    }
}

impl From<Bucketized> for DenseColumn {
    fn from(column: Bucketized) -> DenseColumn {
        DenseColumn::Bucketized(column)
    }
}

impl From<Embedding> for DenseColumn {
    fn from(column: Embedding) -> DenseColumn {
        DenseColumn::Embedding(column)
    }
}

impl DenseColumn {
    /// Its name, under which its variables are kept.
    pub fn name(&self) -> String {
        match self {
            DenseColumn::Numeric(column) => column.key.clone(),
            DenseColumn::Bucketized(column) => column.name(),
            DenseColumn::Indicator(of) => format!("{}_indicator", of.name()),
            DenseColumn::Embedding(column) => format!("{}_embedding", column.of.name()),
        }
    }

    /// Number of values per example.
    pub fn width(&self) -> usize {
        match self {
            DenseColumn::Numeric(column) => column.width,
            DenseColumn::Bucketized(column) => column.width(),
            DenseColumn::Indicator(of) => of.buckets().unwrap_or(0),
            DenseColumn::Embedding(column) => column.width,
        }
    }

    pub(crate) fn keys(&self, found: &mut Vec<(String, super::categorical::KeyKind)>) {
        match self {
            DenseColumn::Numeric(column) => {
                let kind = super::categorical::KeyKind::Numeric(column.clone());
                found.push((column.key.clone(), kind));
            }
            DenseColumn::Bucketized(column) => Categorical::from(column.clone()).keys(found),
            DenseColumn::Indicator(of) => of.keys(found),
            DenseColumn::Embedding(column) => column.of.keys(found),
        }
    }

    /// Its numbers, a row for each example.
    #[track_caller]
    pub(crate) fn dense(&self, graph: &Graph, features: &Features) -> Result<Output> {
        let x = match self {
            DenseColumn::Numeric(column) => column.dense(features)?,
            DenseColumn::Bucketized(column) => column.dense(features)?,
            DenseColumn::Indicator(of) => {
                let depth = i32::try_from(of.buckets()?).unwrap_or(i32::MAX);
                let ids = of.ids(graph, features)?;
                let ones = ids.values.one_hot(depth);
                sums(&ones, &ids)
            }
            DenseColumn::Embedding(column) => {
                let (rows, width) = (column.of.buckets()?, column.width);
                let ids = column.of.ids(graph, features)?;
                let deviation = 1.0 / (width as f32).sqrt();
                let start = init::truncated_normal([rows, width], 0.0, deviation);
                let table = graph.get_variable("embedding_weights", start);
                combined(&table, &ids, column.combiner)
            }
        };
        x.set_shape(PartialShape::new([None, Some(self.width())]));
        Ok(x)
    }
}

/// The sum of the rows of each example.
#[track_caller]
fn sums(rows: &Output, ids: &SparseOutput) -> Output {
    let examples = ids.shape.at(0).cast(DType::Int32);
    let op = rows.graph().op("UnsortedSegmentSum");
    op.input(rows).input(&ids.rows()).input(&examples).output()
}

/// Looks up the rows of the categories and combines them per example; zeros for an example without
/// any.
#[track_caller]
pub(crate) fn combined(table: &Variable, ids: &SparseOutput, combiner: Combiner) -> Output {
    let sum = sums(&table.gather(&ids.values), ids);
    if combiner == Combiner::Sum {
        return sum;
    }
    let ones = ids.values.ones_like().cast(DType::Float);
    let count = sums(&ones, ids).maximum(1.0).expand_dims(1);
    match combiner {
        Combiner::Sqrtn => sum / count.sqrt(),
        _ => sum / count,
    }
}

/// Concatenates the columns in the order of their names, with one row per example.
#[track_caller]
pub fn input_layer(graph: &Graph, features: &Features, columns: &[DenseColumn]) -> Output {
    graph.variable_scope("input_layer", Reuse::Auto, || {
        let mut columns: Vec<&DenseColumn> = columns.iter().collect();
        columns.sort_by_key(|c| c.name());
        let mut all = Vec::with_capacity(columns.len());
        for column in &columns {
            let dense =
                graph.variable_scope(&column.name(), Reuse::Auto, || column.dense(graph, features));
            let Some(dense) = graph.or_fail(dense) else { return Output::new(graph, None) };
            all.push(dense);
        }
        let layer = graph.concat(&all, 1);
        let width = columns.iter().map(|c| c.width()).sum();
        layer.set_shape(PartialShape::new([None, Some(width)]));
        layer
    })
}
