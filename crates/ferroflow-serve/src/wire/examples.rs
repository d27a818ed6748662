//! `Example` messages of classify and regress requests.

use super::pb;
use bytes::Bytes;
use ferroflow_core::{Result, Tensor, ensure, err};
use ferroflow_proto::tensorflow as tf;
use pb::input::Kind;
use prost::Message;
use std::collections::BTreeMap;

/// A feature of an example in a REST request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ExampleFeature {
    Bytes(Vec<Bytes>),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
}

/// The serialized example with these features.
pub(crate) fn encode_example(features: &BTreeMap<String, ExampleFeature>) -> Bytes {
    use tf::feature::Kind as Of;
    let feature = |feature: &ExampleFeature| tf::Feature {
        kind: Some(match feature {
            ExampleFeature::Bytes(value) => Of::BytesList(tf::BytesList { value: value.clone() }),
            ExampleFeature::Floats(value) => Of::FloatList(tf::FloatList { value: value.clone() }),
            ExampleFeature::Ints(value) => Of::Int64List(tf::Int64List { value: value.clone() }),
        }),
    };
    let feature = features.iter().map(|(name, value)| (name.clone(), feature(value))).collect();
    tf::Example { features: Some(tf::Features { feature }) }.encode_to_vec().into()
}

/// The examples of a request as a tensor of serialized messages.
pub(super) fn example_tensor(input: Option<pb::Input>) -> Result<Tensor> {
    let (examples, context) = match input.and_then(|input| input.kind) {
        None => (Vec::new(), None),
        Some(Kind::ExampleList(list)) => (list.examples, None),
        Some(Kind::ExampleListWithContext(list)) => (list.examples, Some(list.context)),
    };
    examples_with_context(examples, context)
}

/// The same for serialized examples.
pub(crate) fn examples_with_context(
    mut examples: Vec<Bytes>,
    context: Option<Bytes>,
) -> Result<Tensor> {
    ensure!(!examples.is_empty(), InvalidArgument, "Input is empty.");
    if let Some(context) = context.filter(|context| !context.is_empty()) {
        for example in &mut examples {
            // Features of the example replace those of the context.
            let mut whole = tf::Example::default();
            for part in [context.clone(), example.clone()] {
                whole
                    .merge(part)
                    .map_err(|e| err!(InvalidArgument, "not an Example message: {e}"))?;
            }
            *example = whole.encode_to_vec().into();
        }
    }
    Tensor::from_strings([examples.len()], examples)
}
