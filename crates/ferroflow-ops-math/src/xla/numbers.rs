//! XlaReducePrecision: floats as a narrower format would have them.

use crate::prelude::*;

/// A format of floats: its number of exponent and of mantissa bits.
#[derive(Clone, Copy, Debug)]
struct Format {
    exponent: u32,
    mantissa: u32,
}

impl Format {
    fn bias(self) -> u64 {
        (1 << (self.exponent - 1)) - 1
    }
}

/// The bits of a float, rounded to the nearest value of `to`. Values above its range become
/// infinite; those below its normal numbers become zero.
fn rounded(bits: u64, from: Format, to: Format) -> u64 {
    let sign_bit = 1u64 << (from.exponent + from.mantissa);
    let exponent_mask = ((1u64 << from.exponent) - 1) << from.mantissa;
    let (sign, mut bits) = (bits & sign_bit, bits & !sign_bit);
    if bits > exponent_mask {
        // Not a number; without a mantissa there is only infinity.
        return sign | if to.mantissa == 0 { exponent_mask } else { bits };
    }
    if to.mantissa < from.mantissa {
        let dropped = from.mantissa - to.mantissa;
        let last = bits >> dropped & 1;
        bits = (bits + (1 << (dropped - 1)) - 1 + last) & !((1 << dropped) - 1);
    }
    if to.exponent < from.exponent {
        let exponent = bits >> from.mantissa;
        if exponent > from.bias() + to.bias() {
            bits = exponent_mask;
        } else if exponent <= from.bias() - to.bias() {
            bits = 0;
        }
    }
    sign | bits
}

fn reduce_precision<T: Float + Bits>(to: Format) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let mut x = ctx.take_or_copy(0)?;
        for x in x.as_mut_slice::<T>()? {
            *x = T::from_word(rounded(x.word(), T::FORMAT, to));
        }
        ctx.set(0, x)
    }
}

/// Floats as integers of their bits.
trait Bits: Copy {
    const FORMAT: Format;
    fn word(self) -> u64;
    fn from_word(word: u64) -> Self;
}

macro_rules! bits {
    ($($t:ty, $word:ty, $exponent:literal, $mantissa:literal;)*) => {$(
        impl Bits for $t {
            const FORMAT: Format = Format { exponent: $exponent, mantissa: $mantissa };
            fn word(self) -> u64 { self.to_bits().into() }
            fn from_word(word: u64) -> Self { <$t>::from_bits(word as $word) }
        }
    )*};
}
bits! {
    f16, u16, 5, 10;
    bf16, u16, 8, 7;
    f32, u32, 8, 23;
    f64, u64, 11, 52;
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("XlaReducePrecision")
        .doc("Floats rounded as if they had fewer bits.")
        .input("operand: T")
        .output("output: T")
        .attr("T: {bfloat16, half, float, double}")
        .attr("exponent_bits: int")
        .attr("mantissa_bits: int")
        .shape(shape::same_as_input)
        .cpu(per_dtype!(FLOAT, init, T => {
            let (exponent, mantissa) = (init.int("exponent_bits")?, init.int("mantissa_bits")?);
            ensure!(
                (1..=63).contains(&exponent) && (0..=63).contains(&mantissa),
                InvalidArgument,
                "a float has at least one exponent bit and no negative number of bits, got \
                 {exponent} and {mantissa}"
            );
            reduce_precision::<T>(Format { exponent: exponent as u32, mantissa: mantissa as u32 })
        }));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn reduced(exponent: i64, mantissa: i64) -> Check<'static> {
        check("XlaReducePrecision").attr("exponent_bits", exponent).attr("mantissa_bits", mantissa)
    }

    #[test]
    fn floats_are_rounded_as_halves_are() {
        let xs = [1.0f32, 1.000_488_3, 65519.0, 65520.0, 6.2e-5, 6.0e-5, -1e-20, 0.1];
        let want = xs.map(|x| {
            let half = f16::from_f32(x);
            // Numbers below the normal ones become zero.
            if half.is_normal() {
                half.to_f32()
            } else if half.is_infinite() {
                f32::INFINITY
            } else {
                0.0
            }
        });
        reduced(5, 10).maps(xs, want);
    }

    #[test]
    fn formats_without_exponents_are_refused() {
        reduced(0, 3).input(Tensor::vector(&[1f32])).fails(Code::InvalidArgument, "exponent bit");
    }
}
