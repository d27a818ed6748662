//! Converts words of a stream to numbers of a distribution, and fills tensors with them.

mod device;

use crate::prelude::*;
use ferroflow_core::ComputePool;
use ferroflow_op_kit::gpu::{self, GpuTypes};
use ferroflow_op_kit::philox::{Philox, Singles, unit_f32, unit_f64};
use parking_lot::Mutex;

pub(super) use device::prepare;

/// Distributions without parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shaped {
    /// Uniform in [0, 1).
    Uniform,
    /// Standard normal.
    Normal,
    /// Standard normal, redrawn beyond two deviations.
    Truncated,
    /// Any integer of the type.
    FullInt,
}

/// Floating-point types that words of a stream become.
pub(super) trait Sample: Float {
    /// How many values four words give.
    const GROUP: usize;
    /// Uniform values in [0, 1) from four words; `GROUP` of them count.
    fn uniform(words: [u32; 4]) -> [Self; 4];
    /// Standard normal values from four words; `GROUP` of them count.
    fn normal(words: [u32; 4]) -> [Self; 4];
    /// A pair of standard normal values from as many words as that takes.
    fn normal_pair(words: &mut Singles) -> [Self::Wide; 2];
}

macro_rules! narrow_samples {
    ($($t:ty: $bits:expr, $one:expr;)*) => {$(
        impl Sample for $t {
            const GROUP: usize = 4;
            fn uniform(words: [u32; 4]) -> [Self; 4] {
                words.map(|w| Self::from_f32(<$t>::from_bits($one | (w as u16 & $bits)).to_f32() - 1.0))
            }
            fn normal(words: [u32; 4]) -> [Self; 4] {
                f32::normal(words).map(<$t>::from_f32)
            }
            fn normal_pair(words: &mut Singles) -> [f32; 2] {
                f32::normal_pair(words)
            }
        }
    )*};
}
narrow_samples! {
    f16: 0x3ff, 15 << 10;
    bf16: 0x7f, 127 << 7;
}

impl Sample for f32 {
    const GROUP: usize = 4;
    fn uniform(words: [u32; 4]) -> [f32; 4] {
        words.map(unit_f32)
    }
    fn normal(w: [u32; 4]) -> [f32; 4] {
        let ([a, b], [c, d]) = (box_muller_f32(w[0], w[1]), box_muller_f32(w[2], w[3]));
        [a, b, c, d]
    }
    fn normal_pair(words: &mut Singles) -> [f32; 2] {
        let x = words.next_u32();
        box_muller_f32(x, words.next_u32())
    }
}

impl Sample for f64 {
    const GROUP: usize = 2;
    fn uniform(w: [u32; 4]) -> [f64; 4] {
        [unit_f64(w[0], w[1]), unit_f64(w[2], w[3]), 0.0, 0.0]
    }
    fn normal(w: [u32; 4]) -> [f64; 4] {
        let [a, b] = box_muller_f64(w);
        [a, b, 0.0, 0.0]
    }
    fn normal_pair(words: &mut Singles) -> [f64; 2] {
        let w = std::array::from_fn(|_| words.next_u32());
        box_muller_f64(w)
    }
}

/// Two normal values from two words; the precision of each step is TensorFlow's.
#[inline]
fn box_muller_f32(x: u32, y: u32) -> [f32; 2] {
    let u = unit_f32(x).max(1.0e-7);
    let angle = (2.0 * std::f64::consts::PI * f64::from(unit_f32(y))) as f32;
    let radius = (-2.0 * u.ln()).sqrt();
    let (sin, cos) = angle.sin_cos();
    [sin * radius, cos * radius]
}

fn box_muller_f64(w: [u32; 4]) -> [f64; 2] {
    let u = unit_f64(w[0], w[1]).max(1.0e-7);
    let angle = 2.0 * std::f64::consts::PI * unit_f64(w[2], w[3]);
    let radius = (-2.0 * u.ln()).sqrt();
    let (sin, cos) = angle.sin_cos();
    [sin * radius, cos * radius]
}

/// Fills `out` from the start of `stream`. The result does not depend on the number of threads.
pub(super) fn fill(which: Shaped, stream: Philox, out: &mut Tensor) -> Result<()> {
    if out.gpu().is_some() {
        return device::fill_on_device(which, stream, out);
    }
    match (which, out.dtype()) {
        (Shaped::FullInt, DType::Int32 | DType::UInt32) => {
            let out: &mut [u32] = Movable::of_mut(out)?;
            fill_groups(stream, 5, out, 4, |w, to: &mut [u32]| to.copy_from_slice(&w[..to.len()]));
        }
        (Shaped::FullInt, DType::Int64 | DType::UInt64) => {
            let out: &mut [u64] = Movable::of_mut(out)?;
            fill_groups(stream, 5, out, 2, |w, to| {
                let both = [pair(w[0], w[1]), pair(w[2], w[3])];
                to.copy_from_slice(&both[..to.len()]);
            });
        }
        (_, DType::Half) => fill_floats::<f16>(which, stream, out)?,
        (_, DType::BFloat16) => fill_floats::<bf16>(which, stream, out)?,
        (_, DType::Float) => fill_floats::<f32>(which, stream, out)?,
        (_, DType::Double) => fill_floats::<f64>(which, stream, out)?,
        (_, other) => bail!(Unimplemented, "no CPU kernel draws {which:?} values of {other}"),
    }
    Ok(())
}

/// A tensor for random numbers, in the memory that the node's outputs are in.
pub(super) fn alloc(ctx: &Ctx<'_>, dtype: DType, shape: Shape) -> Result<Tensor> {
    match ctx.node().device.gpu {
        Some(_) => ctx.alloc_on_device(dtype, shape),
        None => ctx.alloc(dtype, shape),
    }
}

/// The types of random numbers on GPUs.
pub(super) const FLOATS_ON_GPU: GpuTypes = &[("dtype", gpu::FLOATS)];
pub(super) const INTEGERS_ON_GPU: GpuTypes =
    &[("dtype", &[DType::Int64, DType::UInt32, DType::UInt64])];

/// Whether [`fill`] supports the dtype.
pub(super) fn can_fill(which: Shaped, dtype: DType) -> bool {
    use DType::*;
    match which {
        Shaped::FullInt => matches!(dtype, Int32 | UInt32 | Int64 | UInt64),
        _ => matches!(dtype, Half | BFloat16 | Float | Double),
    }
}

/// Fills `out`, of int32 or int64, with integers in `low..high`.
pub(super) fn fill_range(stream: Philox, low: i64, high: i64, out: &mut Tensor) -> Result<()> {
    if out.gpu().is_some() {
        return device::fill_range_on_device(stream, low, high, out);
    }
    match out.dtype() {
        DType::Int32 => {
            let range = std::cmp::max((high as u32).wrapping_sub(low as u32), 1);
            fill_groups(stream, 8, out.as_mut_slice::<i32>()?, 4, |w, to| {
                for (to, w) in to.iter_mut().zip(w) {
                    *to = (low as u32).wrapping_add(w % range) as i32;
                }
            });
        }
        DType::Int64 => {
            let range = std::cmp::max((high as u64).wrapping_sub(low as u64), 1);
            fill_groups(stream, 12, out.as_mut_slice::<i64>()?, 2, |w, to| {
                for (to, w) in to.iter_mut().zip([pair(w[0], w[1]), pair(w[2], w[3])]) {
                    *to = (low as u64).wrapping_add(w % range) as i64;
                }
            });
        }
        other => bail!(Unimplemented, "no CPU kernel draws integers of {other}"),
    }
    Ok(())
}

fn fill_floats<T: Sample>(which: Shaped, stream: Philox, out: &mut Tensor) -> Result<()> {
    let out = out.as_mut_slice::<T>()?;
    match which {
        Shaped::Uniform => fill_groups(stream, 5, out, T::GROUP, |w, to| {
            to.copy_from_slice(&T::uniform(w)[..to.len()])
        }),
        Shaped::Normal => fill_groups(stream, 30, out, T::GROUP, |w, to| {
            to.copy_from_slice(&T::normal(w)[..to.len()])
        }),
        _ => {
            // A group may take any number of words, so each has its own range of the stream.
            let stretch = T::GROUP as u64 * 256 / 4;
            in_blocks(out, T::GROUP, 40, |first, to| {
                for (i, to) in to.chunks_mut(T::GROUP).enumerate() {
                    let mine = stream.skipped((first + i) as u64 * stretch);
                    truncated(&mut Singles::new(mine), to);
                }
            });
        }
    }
    Ok(())
}

fn truncated<T: Sample>(words: &mut Singles, to: &mut [T]) {
    let limit = T::Wide::from_i64(2);
    let mut at = 0;
    while at < to.len() {
        for x in T::normal_pair(words) {
            if x.abs() < limit && at < to.len() {
                to[at] = T::narrow(x);
                at += 1;
            }
        }
    }
}

/// Fills `out` with groups of `group` values, each from the next four words.
fn fill_groups<T: Send>(
    stream: Philox,
    cost: usize,
    out: &mut [T],
    group: usize,
    make: impl Fn([u32; 4], &mut [T]) + Sync,
) {
    in_blocks(out, group, cost, |first, to| {
        let mut stream = stream.skipped(first as u64);
        for to in to.chunks_mut(group) {
            make(stream.draw(), to);
        }
    });
}

/// Calls `work(index of the block's first group, block)` for blocks of whole groups that together
/// make up `out`, on several threads when it is long; `cost` is nanoseconds per value.
fn in_blocks<T: Send>(
    out: &mut [T],
    group: usize,
    cost: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    const GROUPS: usize = 2048;
    if out.len() <= GROUPS * group {
        return work(0, out);
    }
    let blocks: Vec<Mutex<&mut [T]>> = out.chunks_mut(GROUPS * group).map(Mutex::new).collect();
    ComputePool::parallel_for(blocks.len(), GROUPS * group * cost, |range| {
        for i in range {
            work(i * GROUPS, &mut blocks[i].lock());
        }
    });
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_agree_with_one_pass() {
        let n = 3 * 2048 * 4 + 3;
        let mut whole = vec![0u32; n];
        let stream = Philox::seeded(5, 6);
        fill_groups(stream, 1, &mut whole, 4, |w, to| to.copy_from_slice(&w[..to.len()]));
        let mut singles = Singles::new(stream);
        assert!(whole.iter().all(|&x| x == singles.next_u32()));
    }
}
