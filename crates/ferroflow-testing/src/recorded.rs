//! Answers recorded from TensorFlow: one invocation of an op a line.
//!
//! `Op name:kind=value … | dtype[dims] elements… | … => dtype[dims] elements… | …`, or
//! `=> ! Code` for an error. Strings and attributes of kind `hex` are in hexadecimal. Lines that
//! begin with `#` are comments.

use crate::{OpChecker, assert_close};
use ferroflow_core::{DType, Shape, Tensor, bf16, f16};
use ferroflow_graph::{AttrList, AttrValue};
use std::panic::AssertUnwindSafe;

/// Runs every line and compares; fails with the first line that differs.
#[track_caller]
pub(crate) fn check_recorded(ops: &OpChecker, text: &str) {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut count = 0;
    for line in lines {
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| check_line(ops, line)));
        if let Err(panic) = result {
            eprintln!("recorded invocation: {line}");
            std::panic::resume_unwind(panic);
        }
        count += 1;
    }
    assert!(count > 0, "nothing was recorded");
}

fn check_line(ops: &OpChecker, line: &str) {
    let (call, answer) = line.split_once(" => ").expect("a line has an answer");
    let mut parts = call.split(" | ");
    let mut head = parts.next().expect("a call has an op").split(' ');
    let mut op = ops.check(head.next().expect("an op has a name"));
    for attr in head {
        let (name, rest) = attr.split_once(':').expect("an attribute has a kind");
        let (kind, value) = rest.split_once('=').expect("an attribute has a value");
        op = op.attr(name, attr_value(kind, value));
    }
    for input in parts {
        op = op.input(tensor(input));
    }
    let got = op.run();
    if let Some(code) = answer.strip_prefix("! ") {
        let error = got.expect_err("TensorFlow refuses this");
        assert_eq!(format!("{:?}", error.code()), code, "{error}");
        return;
    }
    let got = got.unwrap_or_else(|e| panic!("TensorFlow gives values: {e}"));
    let want: Vec<Tensor> = answer.split(" | ").map(tensor).collect();
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(&want) {
        let (relative, absolute) = match want.dtype() {
            DType::Half => (2e-3, 1e-3),
            DType::BFloat16 => (1.6e-2, 1e-2),
            _ => (1e-4, 2e-5),
        };
        assert_close(got, want, relative, absolute);
    }
}

fn attr_value(kind: &str, value: &str) -> AttrValue {
    let dtype = |name: &str| DType::from_name(name).expect("a dtype");
    let items = || value.split(',').filter(|item| !item.is_empty());
    match kind {
        "int" => AttrValue::Int(value.parse().expect("an int")),
        "float" => AttrValue::Float(value.parse().expect("a float")),
        "bool" => AttrValue::Bool(value == "true"),
        "str" => AttrValue::from(value),
        "hex" => AttrValue::Str(unhex(value)),
        "type" => AttrValue::Type(dtype(value)),
        "ints" => AttrList::Ints(items().map(|x| x.parse().expect("ints")).collect()).into(),
        "floats" => AttrList::Floats(items().map(|x| x.parse().expect("floats")).collect()).into(),
        "types" => AttrList::Types(items().map(dtype).collect()).into(),
        other => panic!("unknown kind of attribute {other}"),
    }
}

fn unhex(text: &str) -> bytes::Bytes {
    let byte = |i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex digits");
    (0..text.len() / 2).map(byte).collect::<Vec<u8>>().into()
}

fn tensor(text: &str) -> Tensor {
    let (dtype, rest) = text.split_once('[').expect("a tensor has a shape");
    let (dims, values) = rest.split_once(']').expect("a shape ends");
    let dtype = DType::from_name(dtype).expect("a dtype");
    let dims: Vec<usize> =
        dims.split(',').filter(|d| !d.is_empty()).map(|d| d.parse().expect("a size")).collect();
    let shape = Shape::from(dims);
    let values = values.split_ascii_whitespace();
    macro_rules! plain {
        ($t:ty) => {{
            let values: Vec<$t> = values.map(|v| v.parse().expect("an element")).collect();
            Tensor::from_slice(shape, &values).expect("as many elements as the shape has")
        }};
    }
    let plain = match dtype {
        DType::String => {
            // A leading x, so that the empty string can be seen.
            let strings = values.map(|v| unhex(&v[1..])).collect();
            Tensor::from_strings(shape, strings).expect("as many strings")
        }
        DType::Float => plain!(f32),
        DType::Double => plain!(f64),
        DType::Half => plain!(f16),
        DType::BFloat16 => plain!(bf16),
        DType::Int8 | DType::QInt8 => plain!(i8),
        DType::Int16 | DType::QInt16 => plain!(i16),
        DType::Int32 | DType::QInt32 => plain!(i32),
        DType::Int64 => plain!(i64),
        DType::UInt8 | DType::QUInt8 => plain!(u8),
        DType::UInt16 | DType::QUInt16 => plain!(u16),
        DType::UInt32 => plain!(u32),
        DType::UInt64 => plain!(u64),
        DType::Bool => plain!(bool),
        other => panic!("no elements of {other} are recorded"),
    };
    match dtype.is_quantized() {
        true => plain.with_dtype(dtype).expect("of the same size"),
        false => plain,
    }
}
