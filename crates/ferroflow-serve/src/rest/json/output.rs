//! Answers as JSON text. Floats have the fewest digits that give the same value back. `NaN` and
//! infinities are written as TensorFlow Serving does, although they are not JSON.

use super::Format;
use crate::inference::Classes;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use ferroflow_core::{
    DType, Element, Reservation, Result, Tensor, bail, bf16, ensure, f16, limits,
};
use std::fmt::Write;

/// Outputs whose names end like this are always written as base64.
const BYTES_SUFFIX: &str = "_bytes";

/// The answer to a predict request.
pub(crate) fn write_outputs(outputs: &[(String, Tensor)], format: Format) -> Result<Bytes> {
    let text = |(name, tensor): &(String, Tensor)| {
        // Each row repeats the names of several outputs.
        let rows = match (format, tensor.shape().dims()) {
            (Format::Row, [rows, ..]) if outputs.len() > 1 => *rows,
            _ => 1,
        };
        text_bytes(tensor).saturating_add(json_len(name.as_bytes()).saturating_mul(rows))
    };
    let bytes = outputs.iter().map(text).fold(0, usize::saturating_add);
    limits().message.admit(bytes, "the answer")?;
    let _memory = Reservation::new(bytes)?;
    let mut out = String::new();
    match format {
        Format::Column => {
            out.push_str("{\n\"outputs\": ");
            match outputs {
                [(name, tensor)] => Elements::of(name, tensor)?.write_all(&mut out),
                many => {
                    out.push('{');
                    for (i, (name, tensor)) in many.iter().enumerate() {
                        separate(&mut out, i);
                        key(&mut out, name);
                        Elements::of(name, tensor)?.write_all(&mut out);
                    }
                    out.push('}');
                }
            }
        }
        Format::Row => {
            out.push_str("{\n\"predictions\": [");
            write_rows(&mut out, outputs)?;
            out.push(']');
        }
    }
    out.push_str("\n}\n");
    // The answer counts by its length until its client has read it.
    out.shrink_to_fit();
    Ok(out.into())
}

/// The approximate bytes of a tensor as text. Lists without elements are written too, so a
/// dimension of zero does not make the text short.
fn text_bytes(tensor: &Tensor) -> usize {
    const NUMBER: usize = 8;
    let dims = tensor.shape().dims().iter();
    let lists = dims.fold(1usize, |product, &dim| product.saturating_mul(dim.max(1)));
    let texts = tensor.strings().unwrap_or_default().iter().map(|text| json_len(text));
    lists.saturating_mul(NUMBER).saturating_add(texts.fold(0, usize::saturating_add))
}

/// The most bytes of a text in JSON: a control character becomes six, and other bytes base64.
fn json_len(text: &[u8]) -> usize {
    let one = |byte: &u8| match byte {
        0..b' ' => 6,
        b'"' | b'\\' => 2,
        _ => 1,
    };
    text.iter().map(one).sum::<usize>().max(text.len() / 3 * 4)
}

fn write_rows(out: &mut String, outputs: &[(String, Tensor)]) -> Result<()> {
    let mut rows = None;
    for (name, tensor) in outputs {
        let Some(&here) = tensor.shape().dims().first() else {
            bail!(
                InvalidArgument,
                "output {name:?} is a scalar, which has no rows; ask with 'inputs' instead of \
                 'instances'"
            )
        };
        let all = *rows.get_or_insert(here);
        ensure!(
            here == all,
            InvalidArgument,
            "output {name:?} has {here} rows, but another has {all}; ask with 'inputs' instead of \
             'instances'"
        );
    }
    let columns = outputs
        .iter()
        .map(|(name, tensor)| Ok((name, Elements::of(name, tensor)?)))
        .collect::<Result<Vec<_>>>()?;
    for row in 0..rows.unwrap_or(0) {
        separate(out, row);
        if let [(_, only)] = &columns[..] {
            only.write_row(out, row);
            continue;
        }
        out.push('{');
        for (i, (name, values)) in columns.iter().enumerate() {
            separate(out, i);
            key(out, name);
            values.write_row(out, row);
        }
        out.push('}');
    }
    Ok(())
}

/// The elements of a tensor and how to write one.
struct Elements<'t> {
    shape: &'t [usize],
    write: Box<dyn Fn(&mut String, usize) + 't>,
}

impl<'t> Elements<'t> {
    fn of(name: &str, tensor: &'t Tensor) -> Result<Elements<'t>> {
        let write: Box<dyn Fn(&mut String, usize) + 't> = match tensor.dtype() {
            DType::Float => with::<f32>(tensor, |out, v| float(out, v, v.is_finite(), v.is_nan()))?,
            DType::Double => {
                with::<f64>(tensor, |out, v| float(out, v, v.is_finite(), v.is_nan()))?
            }
            DType::Half => with::<f16>(tensor, |out, v| {
                float(out, v.to_f32(), v.is_finite(), v.is_nan());
            })?,
            DType::BFloat16 => with::<bf16>(tensor, |out, v| {
                float(out, v.to_f32(), v.is_finite(), v.is_nan());
            })?,
            DType::Bool => with::<bool>(tensor, display)?,
            DType::Int8 => with::<i8>(tensor, display)?,
            DType::Int16 => with::<i16>(tensor, display)?,
            DType::Int32 => with::<i32>(tensor, display)?,
            DType::Int64 => with::<i64>(tensor, display)?,
            DType::UInt8 => with::<u8>(tensor, display)?,
            DType::UInt16 => with::<u16>(tensor, display)?,
            DType::UInt32 => with::<u32>(tensor, display)?,
            DType::UInt64 => with::<u64>(tensor, display)?,
            DType::String => {
                let strings = tensor.strings()?;
                let is_bytes = name.ends_with(BYTES_SUFFIX);
                Box::new(move |out, at| string(out, &strings[at], is_bytes))
            }
            dtype => bail!(
                Unimplemented,
                "output {name:?} is of type {dtype}, which JSON cannot hold; use gRPC"
            ),
        };
        Ok(Elements { shape: tensor.shape().dims(), write })
    }

    fn write_all(&self, out: &mut String) {
        self.write(out, self.shape, 0);
    }

    fn write_row(&self, out: &mut String, row: usize) {
        let inner = self.shape.get(1..).unwrap_or_default();
        self.write(out, inner, row * inner.iter().product::<usize>());
    }

    fn write(&self, out: &mut String, shape: &[usize], from: usize) {
        let [len, inner @ ..] = shape else { return (self.write)(out, from) };
        let size: usize = inner.iter().product();
        out.push('[');
        for i in 0..*len {
            separate(out, i);
            self.write(out, inner, from + i * size);
        }
        out.push(']');
    }
}

fn with<'t, T: Element + 't>(
    tensor: &'t Tensor,
    write: impl Fn(&mut String, T) + 't,
) -> Result<Box<dyn Fn(&mut String, usize) + 't>> {
    let values = tensor.as_slice::<T>()?;
    Ok(Box::new(move |out, at| write(out, values[at])))
}

// Writing to a string does not fail.
fn display(out: &mut String, value: impl std::fmt::Display) {
    let _ = write!(out, "{value}");
}

fn float(
    out: &mut String,
    value: impl std::fmt::Debug + Into<f64> + Copy,
    is_finite: bool,
    is_nan: bool,
) {
    if is_finite {
        let _ = write!(out, "{value:?}");
    } else if is_nan {
        out.push_str("NaN");
    } else {
        out.push_str(if value.into() > 0.0 { "Infinity" } else { "-Infinity" });
    }
}

fn string(out: &mut String, value: &[u8], is_bytes: bool) {
    match std::str::from_utf8(value) {
        Ok(text) if !is_bytes => out.push_str(&serde_json::Value::from(text).to_string()),
        // Other bytes would not be valid JSON.
        _ => {
            let _ = write!(out, "{{\"b64\": \"{}\"}}", STANDARD.encode(value));
        }
    }
}

fn key(out: &mut String, name: &str) {
    out.push_str(&serde_json::Value::from(name).to_string());
    out.push_str(": ");
}

fn separate(out: &mut String, index: usize) {
    if index > 0 {
        out.push_str(", ");
    }
}

/// The answer to a classify request: lists of labels and scores.
pub(crate) fn write_classes(rows: &[Classes]) -> Bytes {
    let mut out = String::from("{\n\"results\": [");
    for (i, classes) in rows.iter().enumerate() {
        separate(&mut out, i);
        out.push('[');
        for (i, (label, score)) in classes.iter().enumerate() {
            separate(&mut out, i);
            out.push('[');
            out.push_str(&serde_json::Value::from(label.as_str()).to_string());
            out.push_str(", ");
            float(&mut out, *score, score.is_finite(), score.is_nan());
            out.push(']');
        }
        out.push(']');
    }
    out.push_str("]\n}\n");
    out.into()
}

/// The answer to a regress request: a list of values.
pub(crate) fn write_regressions(values: &[f32]) -> Bytes {
    let mut out = String::from("{\n\"results\": [");
    for (i, value) in values.iter().enumerate() {
        separate(&mut out, i);
        float(&mut out, *value, value.is_finite(), value.is_nan());
    }
    out.push_str("]\n}\n");
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compact(bytes: &Bytes) -> String {
        String::from_utf8(bytes.to_vec()).unwrap().replace(['\n', ' '], "")
    }

    #[test]
    fn an_answer_that_is_too_long_is_refused_before_it_is_written() {
        let zeros = Tensor::zeros(DType::Float, [1usize << 20, 0]).unwrap();
        let outputs: Vec<_> = (0..4096).map(|i| (format!("y{i}"), zeros.clone())).collect();
        for format in [Format::Row, Format::Column] {
            let e = write_outputs(&outputs, format).unwrap_err();
            assert_eq!(e.code(), ferroflow_core::Code::ResourceExhausted, "{e}");
        }
    }

    #[test]
    fn the_text_of_control_characters_and_of_repeated_names_counts() {
        let controls = Bytes::from(vec![1; 1000]);
        assert_eq!(json_len(&controls), 6000);
        let rows = Tensor::from_strings([3], vec![controls; 3]).unwrap();
        let text = write_outputs(&[("y".into(), rows.clone())], Format::Row).unwrap();
        assert!(text.len() > 18_000 && text_bytes(&rows) + 100 > text.len());
        let len = text.len();
        let text = text.try_into_mut().expect("has one owner");
        assert!(text.capacity() < len + len / 8, "{} for {len}", text.capacity());
        let zeros = Tensor::zeros(DType::Float, [1 << 12]).unwrap();
        let outputs = ["a", "b"].map(|name| (name.repeat(1 << 20), zeros.clone()));
        assert!(write_outputs(&outputs, Format::Column).is_ok());
        let e = write_outputs(&outputs, Format::Row).unwrap_err();
        assert_eq!(e.code(), ferroflow_core::Code::ResourceExhausted, "{e}");
    }

    #[test]
    fn outputs_are_written_in_both_formats() {
        let y = Tensor::from_slice([2, 2], &[1.0f32, 0.1, f32::NAN, f32::NEG_INFINITY]).unwrap();
        let one = [("y".to_string(), y.clone())];
        let row = write_outputs(&one, Format::Row).unwrap();
        assert_eq!(compact(&row), r#"{"predictions":[[1.0,0.1],[NaN,-Infinity]]}"#);
        let column = write_outputs(&one, Format::Column).unwrap();
        assert_eq!(compact(&column), r#"{"outputs":[[1.0,0.1],[NaN,-Infinity]]}"#);
        let texts = vec![Bytes::from("a\"b"), Bytes::from_static(&[0xff])];
        let s = Tensor::from_strings([2], texts).unwrap();
        let two = [("s".to_string(), s.clone()), ("s_bytes".to_string(), s)];
        let row = compact(&write_outputs(&two, Format::Row).unwrap());
        assert_eq!(
            row,
            r#"{"predictions":[{"s":"a\"b","s_bytes":{"b64":"YSJi"}},{"s":{"b64":"/w=="},"s_bytes":{"b64":"/w=="}}]}"#
        );
    }

    #[test]
    fn rows_need_a_first_dimension_that_is_equal() {
        let scalar = [("y".to_string(), Tensor::scalar(1.0f32))];
        assert!(write_outputs(&scalar, Format::Row).is_err());
        assert_eq!(compact(&write_outputs(&scalar, Format::Column).unwrap()), r#"{"outputs":1.0}"#);
        let uneven = [
            ("a".to_string(), Tensor::vector(&[1i32, 2])),
            ("b".to_string(), Tensor::vector(&[1i32])),
        ];
        assert!(write_outputs(&uneven, Format::Row).is_err());
        assert!(write_outputs(&uneven, Format::Column).is_ok());
    }
}
