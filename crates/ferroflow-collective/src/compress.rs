//! Compression for an all-reduce of `f32`: half floats, only the largest values, or only signs. The
//! lossy methods keep what they leave out and add it to the next values (error feedback).

use ferroflow_core::{Result, bf16, ensure, f16};
use half::slice::HalfFloatSliceExt;
use std::collections::HashMap;
use std::fmt;

/// How the values of an all-reduce are compressed on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WireCompression {
    /// Not compressed.
    #[default]
    None,
    /// As IEEE half floats, also in the additions.
    Fp16,
    /// As bfloat16, also in the additions.
    Bf16,
    /// Only the `k` largest values of each rank.
    TopK(u64),
    /// One bit per value and two means per rank.
    OneBit,
}

impl WireCompression {
    pub(crate) fn encode(self) -> (u8, u64) {
        match self {
            WireCompression::None => (0, 0),
            WireCompression::Fp16 => (1, 0),
            WireCompression::Bf16 => (2, 0),
            WireCompression::TopK(k) => (3, k),
            WireCompression::OneBit => (4, 0),
        }
    }

    pub(crate) fn decode(kind: u8, k: u64) -> Option<WireCompression> {
        Some(match kind {
            0 => WireCompression::None,
            1 => WireCompression::Fp16,
            2 => WireCompression::Bf16,
            3 => WireCompression::TopK(k),
            4 => WireCompression::OneBit,
            _ => return None,
        })
    }
}

impl fmt::Display for WireCompression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireCompression::None => f.write_str("nothing"),
            WireCompression::Fp16 => f.write_str("fp16"),
            WireCompression::Bf16 => f.write_str("bf16"),
            WireCompression::TopK(k) => write!(f, "top-{k}"),
            WireCompression::OneBit => f.write_str("one-bit"),
        }
    }
}

/// Most tensors whose residuals are kept.
const MOST_TENSORS: usize = 1 << 16;

/// The values left out so far, by process set and tensor.
#[derive(Default)]
pub(crate) struct Residuals(HashMap<(u16, String), Vec<f32>>);

impl Residuals {
    /// Keeps the values that were left out of the tensor. NaN and infinity are not kept: they have
    /// already been sent, and would spoil every later step.
    fn keep(&mut self, key: &(u16, String), rest: impl Iterator<Item = f32>) {
        // Skip tensors beyond the limit: a job that keeps using new names never reads its residuals
        // again.
        if self.0.len() < MOST_TENSORS || self.0.contains_key(key) {
            let rest = rest.map(|x| if x.is_finite() { x } else { 0.0 }).collect();
            self.0.insert(key.clone(), rest);
        }
    }

    /// Adds the residuals of the tensor to `values`.
    fn add(&self, key: &(u16, String), values: &mut [f32]) {
        if let Some(left) = self.0.get(key).filter(|l| l.len() == values.len()) {
            values.iter_mut().zip(left).for_each(|(v, l)| *v += l);
        }
    }
}

/// Encodes the `k` largest of `values` plus residuals. The rest becomes the new residual.
pub(crate) fn top_k(
    residuals: &mut Residuals,
    key: &(u16, String),
    values: &mut [f32],
    k: usize,
) -> Vec<u8> {
    residuals.add(key, values);
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    let k = k.min(values.len());
    let larger = |a: &u32, b: &u32| {
        values[*b as usize].abs().total_cmp(&values[*a as usize].abs()).then(a.cmp(b))
    };
    if k < order.len() && k > 0 {
        order.select_nth_unstable_by(k - 1, larger);
    }
    order.truncate(k);
    order.sort_unstable();
    let mut bytes = Vec::with_capacity(8 * k);
    let mut rest = values.to_vec();
    for i in order {
        bytes.extend_from_slice(&i.to_le_bytes());
        bytes.extend_from_slice(&values[i as usize].to_le_bytes());
        rest[i as usize] = 0.0;
    }
    residuals.keep(key, rest.into_iter());
    bytes
}

/// Adds the values that a rank encoded with [`top_k`] to `sum`.
pub(crate) fn add_top_k(bytes: &[u8], sum: &mut [f32]) -> Result<()> {
    ensure!(
        bytes.len().is_multiple_of(8),
        DataLoss,
        "{} bytes are not a list of top-k values",
        bytes.len()
    );
    for [a, b, c, d, e, f, g, h] in bytes.as_chunks::<8>().0 {
        let i = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
        let len = sum.len();
        ensure!(i < len, DataLoss, "top-k value at index {i} of a tensor with {len} values");
        sum[i] += f32::from_le_bytes([*e, *f, *g, *h]);
    }
    Ok(())
}

/// Encodes `values` plus residuals as signs and the mean of either sign.
pub(crate) fn one_bit(
    residuals: &mut Residuals,
    key: &(u16, String),
    values: &mut [f32],
) -> Vec<u8> {
    residuals.add(key, values);
    let mean = |positive: bool| {
        let (sum, n) = values
            .iter()
            .filter(|v| (**v >= 0.0) == positive)
            .fold((0f64, 0u64), |(s, n), v| (s + f64::from(*v), n + 1));
        if n == 0 { 0.0 } else { (sum / n as f64) as f32 }
    };
    let (up, down) = (mean(true), mean(false));
    let mut bytes = Vec::with_capacity(8 + values.len().div_ceil(8));
    bytes.extend_from_slice(&up.to_le_bytes());
    bytes.extend_from_slice(&down.to_le_bytes());
    for eight in values.chunks(8) {
        bytes.push(eight.iter().enumerate().fold(0, |b, (i, v)| b | u8::from(*v >= 0.0) << i));
    }
    residuals.keep(key, values.iter().map(|&v| v - if v >= 0.0 { up } else { down }));
    bytes
}

/// Adds the values that a rank encoded with [`one_bit`] to `sum`.
pub(crate) fn add_one_bit(bytes: &[u8], sum: &mut [f32]) -> Result<()> {
    let expected = 8 + sum.len().div_ceil(8);
    ensure!(
        bytes.len() == expected,
        DataLoss,
        "{} bytes of one-bit values, expected {expected}",
        bytes.len()
    );
    let means = bytes.as_chunks::<4>().0;
    let (up, down) = (f32::from_le_bytes(means[0]), f32::from_le_bytes(means[1]));
    for (eight, bits) in sum.chunks_mut(8).zip(&bytes[8..]) {
        for (i, s) in eight.iter_mut().enumerate() {
            *s += if bits >> i & 1 == 1 { up } else { down };
        }
    }
    Ok(())
}

/// Appends `values` as half floats to `out`.
pub(crate) fn narrow(compression: WireCompression, values: &[f32], out: &mut Vec<u8>) {
    for block in values.chunks(256) {
        match compression {
            WireCompression::Bf16 => {
                let mut narrow = [bf16::ZERO; 256];
                narrow[..block.len()].convert_from_f32_slice(block);
                narrow[..block.len()].iter().for_each(|x| out.extend_from_slice(&x.to_ne_bytes()));
            }
            _ => {
                let mut narrow = [f16::ZERO; 256];
                narrow[..block.len()].convert_from_f32_slice(block);
                narrow[..block.len()].iter().for_each(|x| out.extend_from_slice(&x.to_ne_bytes()));
            }
        }
    }
}

/// Converts half floats back to `values`.
pub(crate) fn widen(compression: WireCompression, bytes: &[u8], values: &mut [f32]) {
    for (value, half) in values.iter_mut().zip(bytes.as_chunks::<2>().0) {
        *value = match compression {
            WireCompression::Bf16 => bf16::from_ne_bytes(*half).to_f32(),
            _ => f16::from_ne_bytes(*half).to_f32(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> (u16, String) {
        (0, "w".into())
    }

    #[test]
    fn top_k_sends_the_largest_values_first_and_the_rest_later() {
        let mut residuals = Residuals::default();
        let mut sum = vec![0.0; 4];
        let mut values = vec![1.0, -5.0, 2.0, 0.5];
        add_top_k(&top_k(&mut residuals, &key(), &mut values, 1), &mut sum).unwrap();
        assert_eq!(sum, [0.0, -5.0, 0.0, 0.0]);
        for _ in 0..3 {
            let bytes = top_k(&mut residuals, &key(), &mut [0.0; 4], 1);
            add_top_k(&bytes, &mut sum).unwrap();
        }
        assert_eq!(sum, [1.0, -5.0, 2.0, 0.5], "nothing is lost in the end");
        assert!(add_top_k(&[9, 0, 0, 0, 0, 0, 0, 0], &mut sum).is_err());
    }

    #[test]
    fn one_bit_compression_makes_up_for_its_errors_in_later_steps() {
        let mut residuals = Residuals::default();
        let values: Vec<f32> = (0..19).map(|i| (i as f32 - 9.0) / 7.0).collect();
        let mut sum = vec![0.0; 19];
        let rounds = 400;
        for _ in 0..rounds {
            let bytes = one_bit(&mut residuals, &key(), &mut values.clone());
            assert_eq!(bytes.len(), 11);
            add_one_bit(&bytes, &mut sum).unwrap();
        }
        for (s, v) in sum.iter().zip(&values) {
            assert!((s / rounds as f32 - v).abs() < 0.05, "{s} of {v}");
        }
    }

    #[test]
    fn nan_and_infinity_do_not_enter_the_residuals() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut residuals = Residuals::default();
            let mut values = [1.0, bad, bad, -2.0, bad];
            let mut sum = [0.0; 5];
            add_one_bit(&one_bit(&mut residuals, &key(), &mut values), &mut sum).unwrap();
            assert!(sum.iter().any(|x| !x.is_finite()), "all ranks see it");
            let mut values = [1.0, 1.0, 1.0, -2.0, 1.0];
            let mut sum = [0.0; 5];
            add_one_bit(&one_bit(&mut residuals, &key(), &mut values), &mut sum).unwrap();
            assert!(sum.iter().all(|x| x.is_finite()), "one bit, {bad}: {sum:?}");

            let mut residuals = Residuals::default();
            let mut sum = [0.0; 3];
            let mut values = [bad; 3];
            add_top_k(&top_k(&mut residuals, &key(), &mut values, 1), &mut sum).unwrap();
            assert!(!sum[0].is_finite());
            let mut sum = [0.0; 3];
            let mut values = [1.0; 3];
            add_top_k(&top_k(&mut residuals, &key(), &mut values, 3), &mut sum).unwrap();
            assert_eq!(sum, [1.0; 3], "top-k, {bad}");
        }
    }

    #[test]
    fn half_floats_are_widened_to_the_same_values() {
        let values: Vec<f32> = (0..300).map(|i| i as f32).collect();
        for c in [WireCompression::Fp16, WireCompression::Bf16] {
            let mut bytes = Vec::new();
            narrow(c, &values, &mut bytes);
            let mut back = vec![0.0; 300];
            widen(c, &bytes, &mut back);
            assert_eq!(back[..256], values[..256]);
        }
    }
}
