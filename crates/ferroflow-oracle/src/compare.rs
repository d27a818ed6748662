//! Compares Ferroflow's answer with TensorFlow's.

use crate::record::{ComparisonMode, RecordedAnswer, RecordedCase};
use ferroflow_core::{Complex32, Complex64, DType, Element, Error, Tensor, bf16, f16};
use std::fmt;

/// How two answers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DifferenceKind {
    /// Values differ.
    Value,
    /// Shapes differ.
    Shape,
    /// Dtypes, or numbers of outputs, differ.
    Dtype,
    /// Both fail, with different codes.
    Code,
    /// TensorFlow computes a result where Ferroflow fails.
    Refused,
    /// Ferroflow computes a result where TensorFlow fails.
    Accepted,
}

impl fmt::Display for DifferenceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DifferenceKind::Value => "value",
            DifferenceKind::Shape => "shape",
            DifferenceKind::Dtype => "dtype",
            DifferenceKind::Code => "code",
            DifferenceKind::Refused => "refused",
            DifferenceKind::Accepted => "accepted",
        })
    }
}

/// A difference with a description.
#[derive(Debug)]
pub struct Difference {
    pub kind: DifferenceKind,
    pub text: String,
}

/// The differences of our answer to `case` from TensorFlow's. Each output and each kind of
/// difference is separate, so that an explanation of one does not hide another.
pub fn differences(case: &RecordedCase, ours: &Result<Vec<Tensor>, Error>) -> Vec<Difference> {
    let differs = |kind, text| vec![Difference { kind, text }];
    match (&case.theirs, ours) {
        (RecordedAnswer::Crashed, _) => Vec::new(),
        (RecordedAnswer::Error(code, text), Err(e)) if *code != e.code() => differs(
            DifferenceKind::Code,
            format!("{e}\n  TensorFlow: {}: {}", code.name(), line(text)),
        ),
        (RecordedAnswer::Error(..), Err(_)) => Vec::new(),
        (RecordedAnswer::Error(code, text), Ok(_)) => differs(
            DifferenceKind::Accepted,
            format!("TensorFlow: {}: {}", code.name(), line(text)),
        ),
        (RecordedAnswer::Values(_), Err(e)) => differs(DifferenceKind::Refused, e.to_string()),
        (RecordedAnswer::Values(theirs), Ok(ours)) => {
            if theirs.len() != ours.len() {
                return differs(
                    DifferenceKind::Dtype,
                    format!("{} outputs, expected {}", ours.len(), theirs.len()),
                );
            }
            let mut found = Vec::new();
            for (i, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                for (kind, text) in tensors(ours, theirs, case.mode, case.tolerance) {
                    found.push(Difference { kind, text: format!("output {i}: {text}") });
                }
            }
            found
        }
    }
}

fn tensors(
    ours: &Tensor,
    theirs: &Tensor,
    mode: ComparisonMode,
    tolerance: f64,
) -> Vec<(DifferenceKind, String)> {
    if ours.dtype() != theirs.dtype() {
        return vec![(
            DifferenceKind::Dtype,
            format!("{}, expected {}", ours.dtype(), theirs.dtype()),
        )];
    }
    if ours.shape() != theirs.shape() {
        return vec![(
            DifferenceKind::Shape,
            format!("shape {}, expected {}", ours.shape(), theirs.shape()),
        )];
    }
    if mode == ComparisonMode::Shape {
        return Vec::new();
    }
    if let (Some(a), Some(b)) = (numbers(ours), numbers(theirs)) {
        let tolerance =
            if mode == ComparisonMode::Exact { 0.0 } else { tolerance * precision(ours.dtype()) };
        let texts = numbers_apart(&a, &b, mode, tolerance, smallest(ours.dtype()));
        return texts.into_iter().map(|text| (DifferenceKind::Value, text)).collect();
    }
    let text = if let (Ok(a), Ok(b)) = (ours.strings(), theirs.strings()) {
        (0..a.len())
            .find(|&i| a[i] != b[i])
            .map(|i| format!("string {i}: {:?}, expected {:?}", a[i], b[i]))
    } else if let (Some(a), Some(b)) = (truths(ours), truths(theirs)) {
        let bad: Vec<usize> = (0..a.len()).filter(|&i| a[i] != b[i]).collect();
        bad.first().map(|&i| {
            let (n, all) = (bad.len(), a.len());
            format!("{n} of {all} truths differ, the first at {i}: {}, expected {}", a[i], b[i])
        })
    } else if let (Some(a), Some(b)) = (integers(ours), integers(theirs)) {
        integers_apart(&a, &b)
    } else {
        match (ours.to_wire_bytes(), theirs.to_wire_bytes()) {
            (Ok(a), Ok(b)) if a == b => None,
            _ => Some(format!("{ours:?}\n  expected {theirs:?}").chars().take(600).collect()),
        }
    };
    text.into_iter().map(|text| (DifferenceKind::Value, text)).collect()
}

/// Describes the numbers that are not close, with one line for each kind of difference: NaN on one
/// side, an infinity, or apart by a part of their size.
fn numbers_apart(
    a: &[f64],
    b: &[f64],
    mode: ComparisonMode,
    tolerance: f64,
    tiny: f64,
) -> Vec<String> {
    let largest = b.iter().filter(|x| x.is_finite()).fold(0.0, |m: f64, x| m.max(x.abs()));
    let floor = if mode == ComparisonMode::Norm { largest } else { largest.min(1.0) };
    let near = |x: f64, y: f64| {
        x == y
            || (x - y).abs() <= tiny
            || (x.is_nan() && y.is_nan())
            || (x - y).abs() <= tolerance * (y.abs() + floor)
    };
    let bad: Vec<usize> = (0..a.len()).filter(|&i| !near(a[i], b[i])).collect();
    let way = |i: usize| match (a[i], b[i]) {
        (x, _) if x.is_nan() => 0,
        (_, y) if y.is_nan() => 1,
        (x, y) if x.is_infinite() || y.is_infinite() => 2,
        _ => 3,
    };
    let mut lines = Vec::new();
    for wanted in 0..4 {
        let some: Vec<usize> = bad.iter().copied().filter(|&i| way(i) == wanted).collect();
        let Some(&first) = some.first() else { continue };
        let by = some.iter().map(|&i| (a[i] - b[i]).abs() / (b[i].abs() + floor));
        let by = by.fold(0.0, f64::max);
        let by = if wanted == 3 { format!(" by up to {by:.0e}") } else { String::new() };
        lines.push(format!(
            "{} of {} numbers differ{by}, the first at {first}: {:e}, expected {:e}",
            some.len(),
            a.len(),
            a[first],
            b[first]
        ));
    }
    lines
}

fn integers_apart(a: &[i128], b: &[i128]) -> Option<String> {
    let bad: Vec<usize> = (0..a.len()).filter(|&i| a[i] != b[i]).collect();
    let first = *bad.first()?;
    let by = bad.iter().map(|&i| a[i].abs_diff(b[i])).max()?;
    Some(format!(
        "{} of {} integers differ by up to {by}, the first at {first}: {}, expected {}",
        bad.len(),
        a.len(),
        a[first],
        b[first]
    ))
}

/// A few times the error of one rounding: TensorFlow's own results vary that much with the
/// instruction set.
fn precision(dtype: DType) -> f64 {
    match dtype {
        DType::Half => 2e-3,
        DType::BFloat16 => 1.6e-2,
        DType::Double | DType::Complex128 => 1e-11,
        _ => 1e-5,
    }
}

/// The smallest normal number. TensorFlow's threads flush smaller ones to zero, ours do not.
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

/// The integers of a tensor, including quantized ones.
fn integers(t: &Tensor) -> Option<Vec<i128>> {
    fn of<T: Element + Into<i128>>(t: &Tensor) -> Option<Vec<i128>> {
        Some(t.as_slice::<T>().ok()?.iter().map(|&x| x.into()).collect())
    }
    match t.dtype() {
        DType::Int8 | DType::QInt8 => of::<i8>(t),
        DType::UInt8 | DType::QUInt8 => of::<u8>(t),
        DType::Int16 | DType::QInt16 => of::<i16>(t),
        DType::UInt16 | DType::QUInt16 => of::<u16>(t),
        DType::Int32 | DType::QInt32 => of::<i32>(t),
        DType::UInt32 => of::<u32>(t),
        DType::Int64 => of::<i64>(t),
        DType::UInt64 => of::<u64>(t),
        _ => None,
    }
}

fn truths(t: &Tensor) -> Option<Vec<bool>> {
    t.as_slice::<bool>().ok().map(<[bool]>::to_vec)
}

fn line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(ours: &Tensor, theirs: &Tensor, mode: ComparisonMode) -> Option<DifferenceKind> {
        tensors(ours, theirs, mode, 1.0).first().map(|(kind, _)| *kind)
    }

    #[test]
    fn only_more_than_a_rounding_error_is_a_difference() {
        let (a, near, far) = (1.0f32, 1.000_001, 1.001);
        let [a, near, far] = [a, near, far].map(Tensor::scalar);
        assert_eq!(kind(&a, &near, ComparisonMode::Value), None);
        assert_eq!(kind(&a, &far, ComparisonMode::Value), Some(DifferenceKind::Value));
        assert_eq!(kind(&a, &near, ComparisonMode::Exact), Some(DifferenceKind::Value));
        assert_eq!(kind(&a, &far, ComparisonMode::Shape), None);
    }

    #[test]
    fn nan_equals_nan_and_infinity_differs_from_large_numbers() {
        let [nan, inf, max] = [f64::NAN, f64::INFINITY, f64::MAX].map(Tensor::scalar);
        assert_eq!(kind(&nan, &nan, ComparisonMode::Value), None);
        assert_eq!(kind(&inf, &max, ComparisonMode::Value), Some(DifferenceKind::Value));
        assert_eq!(kind(&nan, &inf, ComparisonMode::Value), Some(DifferenceKind::Value));
    }

    #[test]
    fn each_kind_of_difference_has_its_own_line() {
        let ours = Tensor::vector(&[f64::NAN, 1.0, 2.0, 3.0, f64::INFINITY]);
        let theirs = Tensor::vector(&[1.0, 1.0, f64::NAN, 3.3, 5.0]);
        let found = tensors(&ours, &theirs, ComparisonMode::Value, 1.0);
        let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "1 of 5 numbers differ, the first at 0: NaN, expected 1e0",
                "1 of 5 numbers differ, the first at 2: 2e0, expected NaN",
                "1 of 5 numbers differ, the first at 4: inf, expected 5e0",
                "1 of 5 numbers differ by up to 7e-2, the first at 3: 3e0, expected 3.3e0",
            ]
        );
    }

    #[test]
    fn small_results_are_compared_relative_to_each_other() {
        let (a, b) = (Tensor::vector(&[1e-9f64, 1e-9]), Tensor::vector(&[1e-9f64, 2e-9]));
        assert_eq!(kind(&a, &b, ComparisonMode::Value), Some(DifferenceKind::Value));
    }

    #[test]
    fn differing_integers_and_booleans_are_listed() {
        let text = |ours: &Tensor, theirs: &Tensor| {
            tensors(ours, theirs, ComparisonMode::Value, 1.0)[0].1.clone()
        };
        assert_eq!(
            text(&Tensor::vector(&[1i32, 5, 9]), &Tensor::vector(&[1i32, 7, -1])),
            "2 of 3 integers differ by up to 10, the first at 1: 5, expected 7"
        );
        assert_eq!(
            text(&Tensor::vector(&[true, true]), &Tensor::vector(&[true, false])),
            "1 of 2 truths differ, the first at 1: true, expected false"
        );
        assert!(
            tensors(&Tensor::scalar(3u64), &Tensor::scalar(3u64), ComparisonMode::Value, 1.0)
                .is_empty()
        );
    }

    #[test]
    fn differing_shapes_and_dtypes_are_reported_instead_of_values() {
        let (scalar, vector) = (Tensor::scalar(1i32), Tensor::vector(&[1i32]));
        assert_eq!(kind(&scalar, &vector, ComparisonMode::Value), Some(DifferenceKind::Shape));
        assert_eq!(
            kind(&scalar, &Tensor::scalar(1i64), ComparisonMode::Shape),
            Some(DifferenceKind::Dtype)
        );
        assert_eq!(
            kind(&scalar, &Tensor::scalar(2i32), ComparisonMode::Value),
            Some(DifferenceKind::Value)
        );
    }
}
