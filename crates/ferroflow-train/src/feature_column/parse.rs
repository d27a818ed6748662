//! Parses features from serialized `Example` records.

use super::Column;
use super::categorical::KeyKind;
use super::features::{Feature, Features, SparseOutput};
use crate::output::Output;
use crate::value::strings;
use ferroflow_core::{DType, PartialShape, Tensor};
use ferroflow_graph::AttrList;
use std::collections::BTreeMap;

/// How to parse a feature of an `Example`.
#[derive(Clone, Debug, PartialEq)]
pub enum FeatureSpec {
    /// A fixed number of values; a missing feature gets the default or fails the step.
    Fixed {
        /// The type of the values.
        dtype: DType,
        /// The number of values of each example.
        width: usize,
        /// The value of examples without the feature; without a default that is an error.
        default: Option<f32>,
    },
    /// Any number of values in each.
    Any {
        /// The type of the values.
        dtype: DType,
    },
}

/// The parse specification of columns, by feature name. Features of crosses and hashes are taken as
/// strings.
pub fn parse_spec(columns: &[Column]) -> BTreeMap<String, FeatureSpec> {
    let mut keys = Vec::new();
    for column in columns {
        match column {
            Column::Dense(column) => column.keys(&mut keys),
            Column::Categorical(column) => column.keys(&mut keys),
        }
    }
    let spec = |kind: KeyKind| match kind {
        KeyKind::Text => FeatureSpec::Any { dtype: DType::String },
        KeyKind::Number => FeatureSpec::Any { dtype: DType::Int64 },
        KeyKind::Numeric(column) => {
            let (width, default) = column.parsed();
            FeatureSpec::Fixed { dtype: DType::Float, width, default }
        }
    };
    keys.into_iter().map(|(key, kind)| (key, spec(kind))).collect()
}

/// The features of serialized `Example` records, a vector of strings.
#[track_caller]
pub fn parse_examples(serialized: &Output, spec: &BTreeMap<String, FeatureSpec>) -> Features {
    let g = serialized.graph();
    let names = |list: &[&String]| g.constant_from(strings(list), None);
    let (mut sparse_keys, mut sparse_types) = (Vec::new(), Vec::new());
    let (mut dense_keys, mut dense_shapes, mut defaults) = (Vec::new(), Vec::new(), Vec::new());
    for (key, spec) in spec {
        match spec {
            FeatureSpec::Any { dtype } => {
                sparse_keys.push(key);
                sparse_types.push(*dtype);
            }
            FeatureSpec::Fixed { dtype, width, default } => {
                dense_keys.push(key);
                dense_shapes.push(PartialShape::new([Some(*width)]));
                let value = match default {
                    Some(value) => {
                        crate::value::number_as(Tensor::vector(&vec![*value; *width]), *dtype)
                    }
                    // An empty default makes the feature required.
                    None => Tensor::zeros(*dtype, [0]),
                };
                defaults.push(g.constant_from(value, None));
            }
        }
    }
    let outputs = g
        .op("ParseExampleV2")
        .input(serialized)
        .input(&names(&[]))
        .input(&names(&sparse_keys))
        .input(&names(&dense_keys))
        .input(&names(&[]))
        .list(&defaults)
        .attr("num_sparse", sparse_keys.len() as i64)
        .attr("sparse_types", AttrList::Types(sparse_types))
        .attr("ragged_value_types", AttrList::Types(Vec::new()))
        .attr("ragged_split_types", AttrList::Types(Vec::new()))
        .attr("dense_shapes", dense_shapes)
        .outputs();
    let mut features = Features::new();
    let n = sparse_keys.len();
    for (i, key) in sparse_keys.into_iter().enumerate() {
        let parts = [outputs.get(i), outputs.get(n + i), outputs.get(2 * n + i)];
        if let [Some(indices), Some(values), Some(shape)] = parts {
            let (indices, values, shape) = (indices.clone(), values.clone(), shape.clone());
            features.insert(key, Feature::Sparse(SparseOutput { indices, values, shape }));
        }
    }
    for (key, tensor) in dense_keys.into_iter().zip(outputs.iter().skip(3 * n)) {
        features.insert(key, Feature::Dense(tensor.clone()));
    }
    features
}
