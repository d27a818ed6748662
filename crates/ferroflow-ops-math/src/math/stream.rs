//! Writes results that are larger than the caches past them. An ordinary store first reads the line
//! that it overwrites, a third more traffic for an addition, and evicts other data from the cache.

use crate::prelude::*;
use ferroflow_op_kit::parallel::split_mut;

/// Results of at least this many bytes would be evicted before they are used.
const FROM: usize = 32 << 20;
/// Elements computed at a time, in the nearest cache.
const BLOCK: usize = 1024;
/// Parts of threads start at multiples of this, so that whole vectors are written.
const UNIT: usize = 64;

/// Like [`split_mut`], for results that `work` only writes. `work` may get a block that is copied
/// to `out` later.
pub(crate) fn split_new<T: Element>(
    out: &mut [T],
    cost: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    if size_of_val(out) < FROM {
        return split_mut(out, 1, cost, work);
    }
    split_mut(out, UNIT, cost, |first, part| {
        let mut block = [T::default(); BLOCK];
        for (i, to) in part.chunks_mut(BLOCK).enumerate() {
            let block = &mut block[..to.len()];
            work(first + i * BLOCK, block);
            write_past(block, to);
        }
        fence();
    });
}

/// Copies `from` to `to`; call [`fence`] before it is read.
fn write_past<T: Element>(from: &[T], to: &mut [T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        const VECTOR: usize = size_of::<__m128i>();
        let len = size_of_val(to);
        if to.as_ptr().addr().is_multiple_of(VECTOR)
            && len.is_multiple_of(VECTOR)
            && size_of_val(from) == len
        {
            let (from, to) = (from.as_ptr().cast::<__m128i>(), to.as_mut_ptr().cast::<__m128i>());
            for i in 0..len / VECTOR {
                // SAFETY: both have `len` bytes, elements have no padding, and the destination is
                // aligned. Every x86-64 has these instructions.
                unsafe { _mm_stream_si128(to.add(i), _mm_loadu_si128(from.add(i))) };
            }
            return;
        }
    }
    to.copy_from_slice(from);
}

/// Makes the writes of this thread past the caches visible in order.
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has this instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_results_are_written_once_and_whole() {
        for len in [10, FROM / 4, FROM / 4 + 1037] {
            let mut out = vec![0u32; len];
            split_new(&mut out, 1, |first, part| {
                for (i, to) in part.iter_mut().enumerate() {
                    *to = (first + i) as u32 ^ 5;
                }
            });
            assert!(out.iter().enumerate().all(|(i, &x)| x == i as u32 ^ 5));
        }
    }
}
