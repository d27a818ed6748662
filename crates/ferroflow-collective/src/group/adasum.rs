//! Adasum: a sum that counts the common part of two gradients only once.
//!
//! Two gradients `a` and `b` become `(1 - a·b / 2|a|²) a + (1 - a·b / 2|b|²) b`. That is their sum
//! if they are orthogonal, and their mean if they are equal. Many ranks combine in pairs, at
//! doubling distances.

use super::{Group, SEGMENT, SetId, count_of};
use crate::number::{Number, bytes_of_mut};
use crate::reduce::ReduceOp;
use crate::schedule::{Schedule, segments};
use crate::signature::OperationKind;
use ferroflow_core::{DType, Result, bail};

impl Group {
    /// Replaces `values`, which are `f32` or `f64`, by the Adasum of all ranks' values.
    pub fn adasum<T: Number>(&mut self, values: &mut [T]) -> Result<()> {
        self.adasum_in(SetId::WORLD, T::DTYPE, bytes_of_mut(values))
    }

    /// [`Group::adasum`] among the ranks of a set, on bytes.
    pub fn adasum_in(&mut self, set: SetId, dtype: DType, bytes: &mut [u8]) -> Result<()> {
        let combine = match dtype {
            DType::Float => float::combine,
            DType::Double => double::combine,
            other => bail!(Unimplemented, "adasum supports float and double, not {other}"),
        };
        let count = count_of(dtype, bytes)?;
        let (me, n) = self.place(set)?;
        if n == 1 {
            return self.alive();
        }
        let signature = self.signature(OperationKind::Adasum, ReduceOp::Sum, dtype, 0, set, count);
        let segment = SEGMENT / dtype.size().unwrap_or(1);
        let trade = |group: &mut Group, to: Option<usize>, from: Option<usize>, own: &[u8]| {
            let mut s = Schedule::with_separate_source();
            if let Some(to) = to {
                segments(0..count, segment).for_each(|r| s.send(to as u32, r));
            }
            let mut theirs = Vec::new();
            if let Some(from) = from {
                theirs.resize(own.len(), 0);
                segments(0..count, segment).for_each(|r| s.store(from as u32, r));
            }
            group.run(set, signature, &s.built(), Some(own), &mut theirs).map(|()| theirs)
        };
        // Ranks beyond a power of two send their values first and receive the result last.
        let power = 1usize << n.ilog2();
        let extra = (me < n - power).then_some(me + power);
        let keeper = me.checked_sub(power);
        let theirs = trade(self, keeper, extra, bytes)?;
        combine(bytes, &theirs);
        let mut distance = 1;
        while distance < power {
            let partner = (me < power).then_some(me ^ distance);
            let theirs = trade(self, partner, partner, bytes)?;
            combine(bytes, &theirs);
            distance *= 2;
        }
        let result = trade(self, extra, keeper, bytes)?;
        if keeper.is_some() {
            bytes.copy_from_slice(&result);
        }
        Ok(())
    }
}

macro_rules! adasum {
    ($module:ident: $t:ty, $size:literal) => {
        mod $module {
            /// Combines both gradients. Both ranks of a pair compute the same bits: every sum is in
            /// the order of elements, and swapping `mine` and `theirs` only swaps the operands of a
            /// product or a sum.
            pub(super) fn combine(mine: &mut [u8], theirs: &[u8]) {
                if theirs.is_empty() {
                    return;
                }
                let (mine, _) = mine.as_chunks_mut::<$size>();
                let (theirs, _) = theirs.as_chunks::<$size>();
                let (mut dot, mut a2, mut b2) = (0f64, 0f64, 0f64);
                for (a, b) in mine.iter().zip(theirs) {
                    let (a, b) = (<$t>::from_ne_bytes(*a) as f64, <$t>::from_ne_bytes(*b) as f64);
                    dot += a * b;
                    a2 += a * a;
                    b2 += b * b;
                }
                // A gradient of zeros adds nothing, whatever its factor.
                let factor =
                    |square: f64| if square > 0.0 { 1.0 - dot / (2.0 * square) } else { 1.0 };
                let (fa, fb) = (factor(a2) as $t, factor(b2) as $t);
                for (a, b) in mine.iter_mut().zip(theirs) {
                    let sum = fa * <$t>::from_ne_bytes(*a) + fb * <$t>::from_ne_bytes(*b);
                    *a = sum.to_ne_bytes();
                }
            }
        }
    };
}
adasum!(float: f32, 4);
adasum!(double: f64, 8);
