//! Holds two answers against each other.

use crate::record::{Case, Mode, Theirs};
use ferroflow_core::{Complex32, Complex64, DType, Error, Tensor, bf16, f16};
use std::fmt;

/// How an answer differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Values differ.
    Value,
    /// Shapes differ.
    Shape,
    /// Dtypes, or numbers of outputs, differ.
    Dtype,
    /// Both fail, with different codes.
    Code,
    /// TensorFlow computes what we refuse.
    Refused,
    /// We compute what TensorFlow refuses.
    Accepted,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Value => "value",
            Kind::Shape => "shape",
            Kind::Dtype => "dtype",
            Kind::Code => "code",
            Kind::Refused => "refused",
            Kind::Accepted => "accepted",
        })
    }
}

/// A difference, in words.
#[derive(Debug)]
pub struct Difference {
    pub kind: Kind,
    pub text: String,
}

/// How our answer to `case` differs from TensorFlow's, if it does.
pub fn difference(case: &Case, ours: &Result<Vec<Tensor>, Error>) -> Option<Difference> {
    let differs = |kind, text| Some(Difference { kind, text });
    match (&case.theirs, ours) {
        (Theirs::Crashed, _) => None,
        (Theirs::Error(code, text), Err(e)) if *code != e.code() => {
            differs(Kind::Code, format!("{e}\n  TensorFlow: {}: {}", code.name(), line(text)))
        }
        (Theirs::Error(..), Err(_)) => None,
        (Theirs::Error(code, text), Ok(_)) => {
            differs(Kind::Accepted, format!("TensorFlow: {}: {}", code.name(), line(text)))
        }
        (Theirs::Values(_), Err(e)) => differs(Kind::Refused, e.to_string()),
        (Theirs::Values(theirs), Ok(ours)) => {
            if theirs.len() != ours.len() {
                return differs(
                    Kind::Dtype,
                    format!("{} outputs, expected {}", ours.len(), theirs.len()),
                );
            }
            let outputs = ours.iter().zip(theirs).enumerate();
            outputs.into_iter().find_map(|(i, (ours, theirs))| {
                let (kind, text) = tensors(ours, theirs, case.mode, case.tolerance)?;
                differs(kind, format!("output {i}: {text}"))
            })
        }
    }
}

fn tensors(ours: &Tensor, theirs: &Tensor, mode: Mode, tolerance: f64) -> Option<(Kind, String)> {
    if ours.dtype() != theirs.dtype() {
        return Some((Kind::Dtype, format!("{}, expected {}", ours.dtype(), theirs.dtype())));
    }
    if ours.shape() != theirs.shape() {
        return Some((Kind::Shape, format!("shape {}, expected {}", ours.shape(), theirs.shape())));
    }
    if mode == Mode::Shape {
        return None;
    }
    if let (Some(a), Some(b)) = (numbers(ours), numbers(theirs)) {
        let tolerance = if mode == Mode::Exact { 0.0 } else { tolerance * precision(ours.dtype()) };
        let largest = b.iter().filter(|x| x.is_finite()).fold(0.0, |m: f64, x| m.max(x.abs()));
        let floor = if mode == Mode::Norm { largest } else { largest.min(1.0) };
        let tiny = smallest(ours.dtype());
        let near = |x: f64, y: f64| {
            x == y
                || (x - y).abs() <= tiny
                || (x.is_nan() && y.is_nan())
                || (x - y).abs() <= tolerance * (y.abs() + floor)
        };
        let bad: Vec<usize> = (0..a.len()).filter(|&i| !near(a[i], b[i])).collect();
        let first = *bad.first()?;
        let text = format!(
            "{} of {} numbers differ, the first at {first}: {:e}, expected {:e}",
            bad.len(),
            a.len(),
            a[first],
            b[first]
        );
        return Some((Kind::Value, text));
    }
    if let (Ok(a), Ok(b)) = (ours.strings(), theirs.strings()) {
        let first = (0..a.len()).find(|&i| a[i] != b[i])?;
        return Some((
            Kind::Value,
            format!("string {first}: {:?}, expected {:?}", a[first], b[first]),
        ));
    }
    if let (Some(a), Some(b)) = (levels(ours), levels(theirs)) {
        let first = (0..a.len()).find(|&i| a[i] != b[i])?;
        let bad = (0..a.len()).filter(|&i| a[i] != b[i]).count();
        let text = format!(
            "{bad} of {} levels differ, the first at {first}: {}, expected {}",
            a.len(),
            a[first],
            b[first]
        );
        return Some((Kind::Value, text));
    }
    match (ours.to_wire_bytes(), theirs.to_wire_bytes()) {
        (Ok(a), Ok(b)) if a == b => None,
        _ => Some((
            Kind::Value,
            format!("{ours:?}\n  expected {theirs:?}").chars().take(600).collect(),
        )),
    }
}

/// What one rounding may cost, times a few: TensorFlow's own results change that much with the instruction set.
fn precision(dtype: DType) -> f64 {
    match dtype {
        DType::Half => 2e-3,
        DType::BFloat16 => 1.6e-2,
        DType::Double | DType::Complex128 => 1e-11,
        _ => 1e-5,
    }
}

/// The smallest normal number: TensorFlow's threads take smaller ones for zero, ours do not.
fn smallest(dtype: DType) -> f64 {
    match dtype {
        DType::Half => f16::MIN_POSITIVE.to_f64(),
        DType::Double | DType::Complex128 => f64::MIN_POSITIVE,
        _ => f32::MIN_POSITIVE.into(),
    }
}

fn numbers(t: &Tensor) -> Option<Vec<f64>> {
    Some(match t.dtype() {
        DType::Float => t.as_slice::<f32>().ok()?.iter().map(|&x| x.into()).collect(),
        DType::Double => t.as_slice::<f64>().ok()?.to_vec(),
        DType::Half => t.as_slice::<f16>().ok()?.iter().map(|x| x.to_f64()).collect(),
        DType::BFloat16 => t.as_slice::<bf16>().ok()?.iter().map(|x| x.to_f64()).collect(),
        DType::Complex64 => {
            let parts = |z: &Complex32| [f64::from(z.re), f64::from(z.im)];
            t.as_slice::<Complex32>().ok()?.iter().flat_map(parts).collect()
        }
        DType::Complex128 => {
            t.as_slice::<Complex64>().ok()?.iter().flat_map(|z| [z.re, z.im]).collect()
        }
        _ => return None,
    })
}

/// The integers of a quantised tensor.
fn levels(t: &Tensor) -> Option<Vec<i64>> {
    let plain = match t.dtype() {
        DType::QInt8 => DType::Int8,
        DType::QUInt8 => DType::UInt8,
        DType::QInt16 => DType::Int16,
        DType::QUInt16 => DType::UInt16,
        DType::QInt32 => DType::Int32,
        _ => return None,
    };
    t.clone().with_dtype(plain).ok()?.to_indices().ok()
}

fn line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(ours: &Tensor, theirs: &Tensor, mode: Mode) -> Option<Kind> {
        tensors(ours, theirs, mode, 1.0).map(|(kind, _)| kind)
    }

    #[test]
    fn a_rounding_is_no_difference_but_more_is() {
        let (a, near, far) = (1.0f32, 1.000_001, 1.001);
        let [a, near, far] = [a, near, far].map(Tensor::scalar);
        assert_eq!(kind(&a, &near, Mode::Value), None);
        assert_eq!(kind(&a, &far, Mode::Value), Some(Kind::Value));
        assert_eq!(kind(&a, &near, Mode::Exact), Some(Kind::Value));
        assert_eq!(kind(&a, &far, Mode::Shape), None);
    }

    #[test]
    fn nan_is_nan_and_infinity_is_not_a_large_number() {
        let [nan, inf, max] = [f64::NAN, f64::INFINITY, f64::MAX].map(Tensor::scalar);
        assert_eq!(kind(&nan, &nan, Mode::Value), None);
        assert_eq!(kind(&inf, &max, Mode::Value), Some(Kind::Value));
        assert_eq!(kind(&nan, &inf, Mode::Value), Some(Kind::Value));
    }

    #[test]
    fn small_results_are_compared_relative_to_each_other() {
        let (a, b) = (Tensor::vector(&[1e-9f64, 1e-9]), Tensor::vector(&[1e-9f64, 2e-9]));
        assert_eq!(kind(&a, &b, Mode::Value), Some(Kind::Value));
    }

    #[test]
    fn shapes_and_dtypes_come_before_values() {
        let (scalar, vector) = (Tensor::scalar(1i32), Tensor::vector(&[1i32]));
        assert_eq!(kind(&scalar, &vector, Mode::Value), Some(Kind::Shape));
        assert_eq!(kind(&scalar, &Tensor::scalar(1i64), Mode::Shape), Some(Kind::Dtype));
        assert_eq!(kind(&scalar, &Tensor::scalar(2i32), Mode::Value), Some(Kind::Value));
    }
}
