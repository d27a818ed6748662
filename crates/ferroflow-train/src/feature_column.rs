//! Feature columns: map the features of an example to the inputs of a model.
//!
//! A column names the features it needs. [`input_layer`] makes one matrix of dense columns, and
//! [`linear_model`] a weighted sum of any columns. Names of columns and of their variables are
//! TensorFlow's, so that checkpoints of its estimators fit.
//!
//! ```
//! # let g = ferroflow_train::Graph::new();
//! use ferroflow_train::feature_column::{Features, bucketized, input_layer, numeric};
//! let features = Features::new().with("age", &g.placeholder::<f32>("age", [None]));
//! let columns = [numeric("age").into(), bucketized(&numeric("age"), &[18.0, 65.0]).into()];
//! let layer = input_layer(&g, &features, &columns);
//! assert_eq!(layer.shape().to_string(), "[?,4]"); // the number, and one of three ranges
//! ```

mod categorical;
mod dense;
mod features;
mod parse;

pub use categorical::{
    Categorical, Crossing, VocabularyEntry, crossed, hashed, identity, vocabulary, vocabulary_file,
};
pub use dense::{
    Bucketized, Combiner, DenseColumn, Embedding, Numeric, bucketized, embedding, indicator,
    input_layer, numeric,
};
pub use features::{Feature, Features, SparseOutput};
pub use parse::{FeatureSpec, parse_examples, parse_spec};

use crate::graph::Graph;
use crate::init;
use crate::output::Output;
use crate::variable_scope::Reuse;
use ferroflow_core::{DType, Result, ensure};

/// A column of a linear model: dense, or categorical with a weight for each category.
#[derive(Clone, Debug)]
pub enum Column {
    /// A dense column.
    Dense(DenseColumn),
    /// A categorical column.
    Categorical(Categorical),
}

impl Column {
    /// Its name, under which its weights are kept.
    pub fn name(&self) -> String {
        match self {
            Column::Dense(column) => column.name(),
            Column::Categorical(column) => column.name(),
        }
    }
}

macro_rules! dense {
    ($($column:ty),*) => {$(
        impl From<$column> for Column {
            fn from(column: $column) -> Column {
                Column::Dense(column.into())
            }
        }
    )*};
}
dense!(DenseColumn, Numeric, Embedding);

impl From<Categorical> for Column {
    fn from(column: Categorical) -> Column {
        Column::Categorical(column)
    }
}

/// Both forms have one weight per bucket; this one stores no zeros.
impl From<Bucketized> for Column {
    fn from(column: Bucketized) -> Column {
        Column::Categorical(column.into())
    }
}

/// The sum of the features, weighted, plus a bias: `units` numbers for each example. Weights start
/// at zero.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::feature_column::{Features, hashed, linear_model, numeric};
/// let features = Features::new()
///     .with("age", &g.constant([20.0, 40.0]))
///     .with("city", &g.constant(["Rome", "Oslo"]));
/// let columns = [numeric("age").into(), hashed("city", 100).into()];
/// let logits = linear_model(&g, &features, &columns, 1);
/// assert_eq!(g.trainable_variables().len(), 3);
/// assert!(g.check().is_ok());
/// ```
#[track_caller]
pub fn linear_model(
    graph: &Graph,
    features: &Features,
    columns: &[Column],
    units: usize,
) -> Output {
    let mut sums = Vec::new();
    let bias = graph.variable_scope("linear_model", Reuse::Auto, || {
        let mut columns: Vec<&Column> = columns.iter().collect();
        columns.sort_by_key(|c| c.name());
        for column in columns {
            let sum = graph.variable_scope(&column.name(), Reuse::Auto, || {
                weighted(graph, features, column, units)
            });
            sums.extend(graph.or_fail(sum));
        }
        graph.get_variable("bias_weights", init::zeros([units]))
    });
    let no_columns = || ferroflow_core::err!(InvalidArgument, "a linear model of no columns");
    if sums.is_empty() && graph.check().is_ok() {
        graph.fail(no_columns());
    }
    match sums.is_empty() {
        true => Output::new(graph, None),
        false => graph.add_n(&sums).bias_add(&bias),
    }
}

#[track_caller]
fn weighted(graph: &Graph, features: &Features, column: &Column, units: usize) -> Result<Output> {
    match column {
        Column::Dense(column) => {
            let x = column.dense(graph, features)?;
            let weights = graph.get_variable("weights", init::zeros([column.width(), units]));
            Ok(x.matmul(&weights))
        }
        Column::Categorical(column) => {
            let ids = column.ids(graph, features)?;
            let weights = graph.get_variable("weights", init::zeros([column.buckets()?, units]));
            Ok(dense::combined(&weights, &ids, Combiner::Sum))
        }
    }
}

/// The tensor with a row for each example and `width` columns.
#[track_caller]
pub(crate) fn matrix(tensor: &Output, width: usize) -> Result<Output> {
    ensure!(
        tensor.dtype() != DType::String,
        InvalidArgument,
        "'{}' is a text where a number is expected",
        tensor.name()
    );
    Ok(tensor.cast(DType::Float).reshape([None, Some(width)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Example;
    use crate::testing::{floats, graph, session};
    use bytes::Bytes;
    use ferroflow_core::Tensor;

    fn run(g: &Graph, x: &Output) -> Vec<f32> {
        let init = [g.global_initializer(), g.tables_initializer()];
        let s = session(g).unwrap();
        s.run(init).unwrap();
        floats(&s.run(x).unwrap())
    }

    #[test]
    fn dense_columns_stand_side_by_side_in_the_order_of_their_names() {
        let g = graph();
        let features = Features::new()
            .with("b", &g.constant([[1.0, 2.0], [3.0, 4.0]]))
            .with("a", &g.constant([5, 25]))
            .with("c", &g.constant(["x", "?"]));
        let columns = [
            numeric("b").width(2).into(),
            bucketized(&numeric("a"), &[10.0, 20.0]).into(),
            indicator(&vocabulary("c", &["x", "y"])),
        ];
        let layer = input_layer(&g, &features, &columns);
        assert_eq!(layer.shape().dim(1), Some(7));
        let expected = [1., 0., 0., 1., 2., 1., 0., 0., 0., 1., 3., 4., 0., 0.];
        assert_eq!(run(&g, &layer), expected);
    }

    #[test]
    fn several_words_of_an_example_are_combined() {
        let g = graph();
        let features = Features::new().with("w", &g.constant([["a", "b"], ["", "b"], ["", ""]]));
        let words = vocabulary("w", &["a", "b"]);
        let columns = [indicator(&words)];
        let counts = input_layer(&g, &features, &columns);
        assert_eq!(run(&g, &counts), [1., 1., 0., 1., 0., 0.]);
        let g = graph();
        let features = Features::new().with("w", &g.constant([["a", "b"], ["", "b"], ["", ""]]));
        let mean = input_layer(&g, &features, &[embedding(&words, 1).into()]);
        let table = g.trainable_variables()[0].clone();
        assert_eq!(table.variable_name(), "input_layer/w_embedding/embedding_weights");
        let set = table.assign([[2.0], [4.0]]);
        let init = [g.global_initializer(), g.tables_initializer()];
        let s = session(&g).unwrap();
        s.run(init).unwrap();
        s.run(&set).unwrap();
        assert_eq!(floats(&s.run(&mean).unwrap()), [3.0, 4.0, 0.0]);
    }

    #[test]
    fn words_out_of_the_vocabulary_have_buckets() {
        let g = graph();
        let features = Features::new().with("w", &g.constant(["a", "q", "r", "s"]));
        let column = vocabulary("w", &["a", "b"]).oov_buckets(2);
        assert_eq!(column.buckets().unwrap(), 4);
        let ids = column.ids(&g, &features).unwrap();
        let fill = g.tables_initializer();
        let s = session(&g).unwrap();
        s.run(&fill).unwrap();
        let ids = s.run(&ids.values).unwrap().as_slice::<i64>().unwrap().to_vec();
        assert!(ids[0] == 0 && ids[1..].iter().all(|i| (2..4).contains(i)), "{ids:?}");
    }

    #[test]
    fn a_number_out_of_range_is_an_error_unless_there_is_a_default() {
        let g = graph();
        let features = Features::new().with("n", &g.constant([0i64, 7]));
        let strict = identity("n", 3).ids(&g, &features).unwrap();
        let lenient = identity("n", 3).default_id(2).ids(&g, &features).unwrap();
        let s = session(&g).unwrap();
        assert!(s.run(&strict.values).is_err());
        assert_eq!(s.run(&lenient.values).unwrap().as_slice::<i64>().unwrap(), [0, 2]);
    }

    #[test]
    fn linear_models_learn_crosses() {
        use crate::{Optimizer, Sgd, losses};
        let g = graph();
        let features = Features::new()
            .with("a", &g.constant(["x", "x", "y", "y"]))
            .with("b", &g.constant([1i64, 2, 1, 2]));
        let cross = crossed(&["a".into(), "b".into()], 50);
        assert_eq!(cross.name(), "a_X_b");
        let logits = linear_model(&g, &features, &[cross.into()], 1);
        // A pattern that neither column shows alone.
        let loss = losses::mean_squared_error(&g.constant([[1.0], [0.0], [0.0], [1.0]]), &logits);
        let train = Sgd::new(0.5).minimize(&loss);
        let init = g.global_initializer();
        let s = session(&g).unwrap();
        s.run(&init).unwrap();
        for _ in 0..100 {
            s.run(&train).unwrap();
        }
        assert!(s.run(loss.scalar::<f32>()).unwrap() < 1e-3);
    }

    #[test]
    fn a_missing_feature_is_named() {
        let g = graph();
        linear_model(&g, &Features::new(), &[numeric("age").into()], 1);
        assert!(g.check().unwrap_err().message().contains("feature 'age'"));
    }

    #[test]
    fn examples_are_parsed_as_the_columns_ask() {
        let columns: [Column; 2] =
            [numeric("x").width(2).into(), Column::Categorical(vocabulary("w", &["a", "b"]))];
        let spec = parse_spec(&columns);
        let g = graph();
        let records = [
            Example::new().floats("x", &[1.0, 2.0]).texts("w", &["b", "a"]),
            Example::new().floats("x", &[3.0, 4.0]),
        ];
        let records = records.iter().map(|r| Bytes::from(r.encode())).collect();
        let records = g.constant(Tensor::from_strings([2], records).unwrap());
        let features = parse_examples(&records, &spec);
        let layer = input_layer(
            &g,
            &features,
            &[numeric("x").width(2).into(), indicator(&vocabulary("w", &["a", "b"]))],
        );
        assert_eq!(run(&g, &layer), [1., 1., 1., 2., 0., 0., 3., 4.]);
    }
}
