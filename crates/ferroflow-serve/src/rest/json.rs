//! Tensors and examples as JSON, in TensorFlow Serving's row and column formats.

mod numbers;
mod output;

pub(super) use output::{write_classes, write_outputs, write_regressions};

use crate::wire::{ExampleFeature, encode_example, examples_with_context};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use ferroflow_core::{DType, Reservation, Result, Tensor, bail, ensure, err};
use ferroflow_train::Signature;
use numbers::tensor_of_leaves;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The format of a request and of its answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Format {
    /// `instances`: a list of examples.
    Row,
    /// `inputs`: a list for each input.
    Column,
}

/// The body of a predict request.
pub(super) struct PredictBody {
    /// Empty for the default.
    pub signature: String,
    pub data: PredictData,
}

/// The values of a predict request.
pub(super) struct PredictData {
    format: Format,
    value: Value,
    _memory: Reservation,
}

/// The memory of a value: in a list with room for as many again, and its reference in another list.
const VALUE: usize = 2 * (size_of::<Value>() + size_of::<&Value>());

impl PredictBody {
    pub fn parse(body: &[u8]) -> Result<PredictBody> {
        let (mut object, _memory) = object(body)?;
        let signature = signature_name(&mut object)?;
        let (format, value) = match (object.remove("instances"), object.remove("inputs")) {
            (Some(value), None) => (Format::Row, value),
            (None, Some(value)) => (Format::Column, value),
            (Some(_), Some(_)) => {
                bail!(InvalidArgument, "the request has both 'instances' and 'inputs'")
            }
            (None, None) => bail!(InvalidArgument, "Missing 'inputs' or 'instances' key"),
        };
        let data = PredictData { format, value, _memory };
        Ok(PredictBody { signature, data })
    }
}

impl PredictData {
    /// The inputs of the signature.
    pub fn tensors(&self, signature: &Signature) -> Result<(Vec<(String, Tensor)>, Format)> {
        let inputs = match self.format {
            Format::Row => self.rows(signature)?,
            Format::Column => self.columns(signature)?,
        };
        Ok((inputs, self.format))
    }

    fn rows(&self, signature: &Signature) -> Result<Vec<(String, Tensor)>> {
        let Value::Array(instances) = &self.value else {
            bail!(InvalidArgument, "'instances' is not a list")
        };
        ensure!(!instances.is_empty(), InvalidArgument, "'instances' is an empty list");
        if !instances.iter().any(is_named) {
            let (name, dtype) = only_input(signature)?;
            let values: Vec<&Value> = instances.iter().collect();
            return Ok(vec![(name.clone(), tensor(&values, dtype).map_err(|e| e.context(name))?)]);
        }
        let mut columns: BTreeMap<&String, Vec<&Value>> = BTreeMap::new();
        for (i, instance) in instances.iter().enumerate() {
            let Value::Object(named) = instance else {
                bail!(InvalidArgument, "instance {i} is not an object, but others are")
            };
            for (name, value) in named {
                columns.entry(name).or_default().push(value);
            }
            let complete = columns.values().all(|values| values.len() == i + 1);
            ensure!(complete, InvalidArgument, "instance {i} has not the inputs of the others");
        }
        let one = |(name, values): (&String, Vec<&Value>)| {
            let tensor =
                tensor(&values, dtype_of(signature, name)?).map_err(|e| e.context(name))?;
            Ok((name.clone(), tensor))
        };
        columns.into_iter().map(one).collect()
    }

    fn columns(&self, signature: &Signature) -> Result<Vec<(String, Tensor)>> {
        match &self.value {
            Value::Object(named) if is_named(&self.value) => {
                ensure!(!named.is_empty(), InvalidArgument, "'inputs' is an empty object");
                let one = |(name, value): (&String, &Value)| {
                    let tensor = whole(value, dtype_of(signature, name)?);
                    Ok((name.clone(), tensor.map_err(|e| e.context(name))?))
                };
                named.iter().map(one).collect()
            }
            value => {
                let (name, dtype) = only_input(signature)?;
                Ok(vec![(name.clone(), whole(value, dtype).map_err(|e| e.context(name))?)])
            }
        }
    }
}

/// Whether a value is an object of inputs, rather than the bytes of a string.
fn is_named(value: &Value) -> bool {
    matches!(value, Value::Object(object) if base64_text(object).is_none())
}

fn only_input(signature: &Signature) -> Result<(&String, DType)> {
    let mut inputs = signature.inputs.iter();
    match (inputs.next(), inputs.next()) {
        (Some((name, info)), None) => Ok((name, info.dtype)),
        _ => {
            let names: Vec<&String> = signature.inputs.keys().collect();
            bail!(InvalidArgument, "the signature has the inputs {names:?}; name them")
        }
    }
}

fn dtype_of(signature: &Signature, name: &str) -> Result<DType> {
    let info = signature.inputs.get(name).ok_or_else(|| {
        let takes: Vec<&String> = signature.inputs.keys().collect();
        err!(InvalidArgument, "the signature has no input {name:?}; it takes {takes:?}")
    })?;
    Ok(info.dtype)
}

/// The tensor of a value that includes the batch dimension.
fn whole(value: &Value, dtype: DType) -> Result<Tensor> {
    let shape = shape_of(value);
    let mut leaves = Vec::new();
    collect(value, &shape, &mut leaves)?;
    tensor_of_leaves(&leaves, shape, dtype)
}

/// The tensor whose rows are these values.
fn tensor(rows: &[&Value], dtype: DType) -> Result<Tensor> {
    let inner = rows.first().map(|row| shape_of(row)).unwrap_or_default();
    let mut leaves = Vec::new();
    for row in rows {
        collect(row, &inner, &mut leaves)?;
    }
    let shape = std::iter::once(rows.len()).chain(inner).collect();
    tensor_of_leaves(&leaves, shape, dtype)
}

/// The shape, from the first element of each list.
fn shape_of(mut value: &Value) -> Vec<usize> {
    let mut shape = Vec::new();
    while let Value::Array(items) = value {
        shape.push(items.len());
        match items.first() {
            Some(first) => value = first,
            None => break,
        }
    }
    shape
}

/// Appends the scalars of a value, which must have the given shape.
fn collect<'v>(value: &'v Value, shape: &[usize], leaves: &mut Vec<&'v Value>) -> Result<()> {
    match (value, shape) {
        (Value::Array(items), [len, inner @ ..]) => {
            ensure!(
                items.len() == *len,
                InvalidArgument,
                "lists at one level have {} and {len} elements; a tensor needs equal lengths",
                items.len()
            );
            items.iter().try_for_each(|item| collect(item, inner, leaves))
        }
        (Value::Array(_), []) => {
            bail!(InvalidArgument, "there is a list where other elements are values")
        }
        (_, []) => {
            leaves.push(value);
            Ok(())
        }
        _ => bail!(InvalidArgument, "there is a value where other elements are lists"),
    }
}

/// The text of `{"b64": TEXT}`.
fn base64_text(object: &Map<String, Value>) -> Option<&str> {
    match object.len() {
        1 => object.get("b64")?.as_str(),
        _ => None,
    }
}

/// The bytes of a string.
fn bytes_of(value: &Value) -> Result<Bytes> {
    if let Value::String(text) = value
        && !text.starts_with(numbers::SPECIAL)
    {
        return Ok(Bytes::copy_from_slice(text.as_bytes()));
    }
    let Some(text) = value.as_object().and_then(base64_text) else {
        bail!(InvalidArgument, "{value} is not a string")
    };
    let bytes = STANDARD.decode(text);
    bytes.map(Bytes::from).map_err(|e| err!(InvalidArgument, "{text:?} is not base64: {e}"))
}

/// The signature and the examples of a classify or regress request.
pub(super) fn examples(body: &[u8]) -> Result<(String, Tensor)> {
    let (mut object, _memory) = object(body)?;
    let signature = signature_name(&mut object)?;
    let context = match object.remove("context") {
        Some(context) => Some(example(&context).map_err(|e| e.context("context"))?),
        None => None,
    };
    let Some(Value::Array(list)) = object.remove("examples") else {
        bail!(InvalidArgument, "'examples' is missing or not a list")
    };
    let examples = list.iter().map(example).collect::<Result<Vec<_>>>()?;
    Ok((signature, examples_with_context(examples, context)?))
}

/// A serialized example.
fn example(value: &Value) -> Result<Bytes> {
    let Value::Object(features) = value else {
        bail!(InvalidArgument, "an example is an object of features, not {value}")
    };
    let one = |(name, value): (&String, &Value)| {
        let values = match value {
            Value::Array(items) => items.iter().collect(),
            other => vec![other],
        };
        Ok((name.clone(), feature(&values).map_err(|e| e.context(name))?))
    };
    let features = features.iter().map(one).collect::<Result<BTreeMap<_, _>>>()?;
    Ok(encode_example(&features))
}

/// A feature: integers, other numbers, or strings.
fn feature(values: &[&Value]) -> Result<ExampleFeature> {
    if values.iter().all(|value| value.is_i64()) && !values.is_empty() {
        return Ok(ExampleFeature::Ints(values.iter().filter_map(|v| v.as_i64()).collect()));
    }
    if values.iter().all(|value| numbers::float(value).is_some()) {
        let floats = values.iter().filter_map(|v| numbers::float(v)).map(|v| v as f32);
        return Ok(ExampleFeature::Floats(floats.collect()));
    }
    let strings = values.iter().map(|value| bytes_of(value)).collect::<Result<Vec<_>>>();
    strings.map(ExampleFeature::Bytes).map_err(|_| {
        err!(InvalidArgument, "a feature is a number, a string or a list of one of them")
    })
}

/// The object of a body, and the reservation of its memory: a byte or two can become a whole value.
fn object(body: &[u8]) -> Result<(Map<String, Value>, Reservation)> {
    // Each value follows one of these bytes, or starts with one.
    let values = body.iter().filter(|byte| b",:[{".contains(byte)).count();
    let memory = Reservation::new(values.saturating_mul(VALUE).saturating_add(body.len()))?;
    let text = std::str::from_utf8(body)
        .map_err(|_| err!(InvalidArgument, "the body is not UTF-8, so it is not JSON"))?;
    ensure!(
        !text.trim().is_empty(),
        InvalidArgument,
        "the request has no body; send a JSON object"
    );
    let parsed = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(first) => serde_json::from_str(&with_special_numbers(text))
            .map_err(|_| err!(InvalidArgument, "JSON Parse error: {first}"))?,
    };
    match parsed {
        Value::Object(object) => Ok((object, memory)),
        _ => bail!(InvalidArgument, "the body is JSON, but not an object"),
    }
}

/// The text with `NaN` and `Infinity` as strings. They are not JSON, but clients send them.
fn with_special_numbers(text: &str) -> Cow<'_, str> {
    let mut out = String::with_capacity(text.len() + 16);
    let (mut rest, mut in_string) = (text, false);
    while let Some(c) = rest.chars().next() {
        let special = ["-Infinity", "Infinity", "NaN"];
        let found = special.into_iter().find(|word| !in_string && rest.starts_with(word));
        if let Some(word) = found {
            out.push_str("\"\\u0001");
            out.push_str(word);
            out.push('"');
            rest = &rest[word.len()..];
            continue;
        }
        let mut take = c.len_utf8();
        match c {
            '"' => in_string = !in_string,
            '\\' if in_string => take += rest[take..].chars().next().map_or(0, char::len_utf8),
            _ => {}
        }
        out.push_str(&rest[..take]);
        rest = &rest[take..];
    }
    out.into()
}

fn signature_name(object: &mut Map<String, Value>) -> Result<String> {
    match object.remove("signature_name") {
        None => Ok(String::new()),
        Some(Value::String(name)) => Ok(name),
        Some(other) => bail!(InvalidArgument, "'signature_name' is {other}, not a string"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::{Code, Limit, Limits, MemoryOwner, PartialShape};
    use ferroflow_train::TensorInfo;

    fn signature(inputs: &[(&str, DType)]) -> Signature {
        let info = |dtype| TensorInfo { name: "x:0".into(), dtype, shape: PartialShape::unknown() };
        let inputs = inputs.iter().map(|(name, dtype)| (name.to_string(), info(*dtype))).collect();
        Signature { inputs, ..Signature::default() }
    }

    fn parsed(text: &str, inputs: &[(&str, DType)]) -> Result<Vec<(String, Tensor)>> {
        Ok(PredictBody::parse(text.as_bytes())?.data.tensors(&signature(inputs))?.0)
    }

    #[test]
    fn rows_and_columns_give_the_same_tensors() {
        let one = [("x", DType::Float)];
        for text in [
            r#"{"instances": [[1, 2.5], [3, 4]]}"#,
            r#"{"instances": [{"x": [1, 2.5]}, {"x": [3, 4]}]}"#,
            r#"{"inputs": [[1, 2.5], [3, 4]]}"#,
            r#"{"inputs": {"x": [[1, 2.5], [3, 4]]}}"#,
        ] {
            let tensors = parsed(text, &one).unwrap();
            assert_eq!(tensors[0].1.shape().dims(), [2, 2], "{text}");
            assert_eq!(tensors[0].1.as_slice::<f32>().unwrap(), [1.0, 2.5, 3.0, 4.0]);
        }
        let two = [("a", DType::Int64), ("b", DType::String)];
        let text = r#"{"instances": [{"a": 1, "b": "x"}, {"a": 2, "b": {"b64": "eQ=="}}]}"#;
        let tensors = parsed(text, &two).unwrap();
        assert_eq!(tensors[0].1.as_slice::<i64>().unwrap(), [1, 2]);
        assert_eq!(tensors[1].1.strings().unwrap(), ["x", "y"]);
        let scalar = parsed(r#"{"inputs": 3}"#, &[("x", DType::Int32)]).unwrap();
        assert_eq!(scalar[0].1.rank(), 0);
    }

    #[test]
    fn values_count_before_they_are_read() {
        let limit = Limit { most: 4 << 20, ..Limits::DEFAULT.session_memory };
        let session = MemoryOwner::new("session 7", limit);
        let body = |n: usize| format!(r#"{{"instances": [{}]}}"#, vec!["0"; n].join(","));
        let parse = |n: usize| session.run(|| PredictBody::parse(body(n).as_bytes()));
        let held = parse(10_000).unwrap();
        assert!(session.live() > 10_000 * size_of::<Value>(), "{}", session.live());
        let e = parse(200_000).err().unwrap();
        assert_eq!(e.code(), Code::ResourceExhausted, "{e}");
        drop(held);
        assert_eq!(session.live(), 0);
    }

    #[test]
    fn special_numbers_are_read() {
        let text = r#"{"instances": [NaN, -Infinity, Infinity], "signature_name": "a\"NaN"}"#;
        let body = PredictBody::parse(text.as_bytes()).unwrap();
        assert_eq!(body.signature, "a\"NaN");
        let (tensors, _) = body.data.tensors(&signature(&[("x", DType::Float)])).unwrap();
        let values = tensors[0].1.as_slice::<f32>().unwrap();
        assert!(values[0].is_nan() && values[1..] == [f32::NEG_INFINITY, f32::INFINITY]);
    }

    #[test]
    fn wrong_requests_are_refused() {
        let one = [("x", DType::Int32)];
        for text in [
            "",
            "[]",
            "{",
            "{}",
            r#"{"instances": []}"#,
            r#"{"instances": 1}"#,
            r#"{"instances": [[1], [2, 3]]}"#,
            r#"{"instances": [[1], 2]}"#,
            r#"{"instances": [1.5]}"#,
            r#"{"instances": ["1"]}"#,
            r#"{"instances": [3000000000]}"#,
            r#"{"instances": [{"x": 1}, {"y": 1}]}"#,
            r#"{"instances": [{"y": 1}]}"#,
            r#"{"instances": [{"x": 1}, 2]}"#,
            r#"{"inputs": {}}"#,
            r#"{"instances": [null]}"#,
            r#"{"instances": [1], "inputs": [1]}"#,
            r#"{"instances": [1], "signature_name": 1}"#,
        ] {
            let e = parsed(text, &one).err().unwrap_or_else(|| panic!("{text} was accepted"));
            assert_eq!(e.code(), ferroflow_core::Code::InvalidArgument, "{text}");
        }
        let text = r#"{"instances": [1]}"#;
        assert!(parsed(text, &[("a", DType::Float), ("b", DType::Float)]).is_err());
    }

    #[test]
    fn examples_have_features_of_three_kinds() {
        let body = r#"{"context": {"c": 1}, "examples": [{"i": [1, 2], "f": 0.5, "s": "x"}]}"#;
        let (signature, examples) = examples(body.as_bytes()).unwrap();
        assert_eq!((signature.as_str(), examples.elements()), ("", 1));
        assert_eq!(
            feature(&[&Value::from(1), &Value::from(0.5)]).unwrap(),
            ExampleFeature::Floats(vec![1.0, 0.5])
        );
        assert!(super::examples(br#"{"examples": [{"x": [1, "a"]}]}"#).is_err());
        assert!(super::examples(br#"{"examples": []}"#).is_err());
    }
}
