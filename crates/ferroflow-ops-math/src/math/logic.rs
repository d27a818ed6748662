//! Logic on `bool`s, and on the bits of integers.

use super::elementwise::{binary, map, unary};
use crate::prelude::*;
use ferroflow_op_kit::gpu;
use ferroflow_op_kit::vector::{Binary, Unary};

struct And;
struct Or;
struct Xor;
struct Not;
struct LeftShift;
struct RightShift;
struct PopulationCount;

impl Binary<bool> for And {
    #[inline(always)]
    fn eval(a: bool, b: bool) -> bool {
        a & b
    }
}
impl Binary<bool> for Or {
    #[inline(always)]
    fn eval(a: bool, b: bool) -> bool {
        a | b
    }
}
impl Unary<bool> for Not {
    #[inline(always)]
    fn eval(a: bool) -> bool {
        !a
    }
}

macro_rules! bits {
    ($($t:ty)*) => {$(
        impl Binary<$t> for And {
            #[inline(always)]
            fn eval(a: $t, b: $t) -> $t { a & b }
        }
        impl Binary<$t> for Or {
            #[inline(always)]
            fn eval(a: $t, b: $t) -> $t { a | b }
        }
        impl Binary<$t> for Xor {
            #[inline(always)]
            fn eval(a: $t, b: $t) -> $t { a ^ b }
        }
        impl Unary<$t> for Not {
            #[inline(always)]
            fn eval(a: $t) -> $t { !a }
        }
        // A shift count below 0 means 0; one beyond the width means the width minus one.
        impl Binary<$t> for LeftShift {
            #[inline(always)]
            fn eval(a: $t, by: $t) -> $t { a << by.clamp(0, (<$t>::BITS - 1) as $t) }
        }
        impl Binary<$t> for RightShift {
            #[inline(always)]
            fn eval(a: $t, by: $t) -> $t { a >> by.clamp(0, (<$t>::BITS - 1) as $t) }
        }
        impl Unary<$t, u8> for PopulationCount {
            #[inline(always)]
            fn eval(a: $t) -> u8 { a.count_ones() as u8 }
        }
    )*};
}
bits!(i8 i16 i32 i64 u8 u16 u32 u64);

const LEFT_SHIFT: &str =
    "(W)((u64)x << (y < 0 ? 0 : y > 8 * (i64)sizeof(W) - 1 ? 8 * sizeof(W) - 1 : y))";
const RIGHT_SHIFT: &str =
    "(W)(x >> (y < 0 ? 0 : y > 8 * (i64)sizeof(W) - 1 ? 8 * sizeof(W) - 1 : y))";
const BITS_SET: &str = "__popcll((u64)x & (~0ull >> (64 - 8 * sizeof(W))))";

pub(crate) fn register(c: &mut Catalog) {
    c.op("LogicalAnd")
        .doc("Element-wise `x and y`.")
        .input("x: bool")
        .input("y: bool")
        .output("z: bool")
        .commutative()
        .broadcasts()
        .gpu_elementwise(&[], "x && y")
        .cpu(|_| Ok(KernelBox::new(binary::<And, bool>())));
    c.op("LogicalOr")
        .doc("Element-wise `x or y`.")
        .input("x: bool")
        .input("y: bool")
        .output("z: bool")
        .commutative()
        .broadcasts()
        .gpu_elementwise(&[], "x || y")
        .cpu(|_| Ok(KernelBox::new(binary::<Or, bool>())));
    c.op("LogicalNot")
        .doc("Element-wise `not x`.")
        .input("x: bool")
        .output("y: bool")
        .involution()
        .shape(shape::same_as_input)
        .gpu_elementwise(&[], "!x")
        .cpu(|_| Ok(KernelBox::new(unary::<Not, bool>())));
    let integer = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}";
    type Make = fn(&KernelInit<'_>) -> Result<KernelBox>;
    let rows: [(&str, &str, &'static str, Make); 3] = [
        (
            "BitwiseAnd",
            "Element-wise `x and y`, bit by bit.",
            "x & y",
            per_dtype!(INTEGER, T => binary::<And, T>()),
        ),
        (
            "BitwiseOr",
            "Element-wise `x or y`, bit by bit.",
            "x | y",
            per_dtype!(INTEGER, T => binary::<Or, T>()),
        ),
        (
            "BitwiseXor",
            "Element-wise `x xor y`, bit by bit.",
            "x ^ y",
            per_dtype!(INTEGER, T => binary::<Xor, T>()),
        ),
    ];
    for (op, doc, text, make) in rows {
        c.op(op)
            .doc(doc)
            .input("x: T")
            .input("y: T")
            .output("z: T")
            .attr(integer)
            .commutative()
            .broadcasts()
            .gpu_elementwise(gpu::INTEGER, text)
            .cpu(make);
    }
    c.op("LeftShift")
        .doc("Element-wise `x` shifted left by `y` bits.")
        .input("x: T")
        .input("y: T")
        .output("z: T")
        .attr(integer)
        .broadcasts()
        .gpu_elementwise(gpu::INTEGER, LEFT_SHIFT)
        .cpu(per_dtype!(INTEGER, T => binary::<LeftShift, T>()));
    c.op("RightShift")
        .doc("Element-wise `x` shifted right by `y` bits; the sign is kept.")
        .input("x: T")
        .input("y: T")
        .output("z: T")
        .attr(integer)
        .broadcasts()
        .gpu_elementwise(gpu::INTEGER, RIGHT_SHIFT)
        .cpu(per_dtype!(INTEGER, T => binary::<RightShift, T>()));
    c.op("Invert")
        .doc("Element-wise, every bit flipped.")
        .input("x: T")
        .output("y: T")
        .attr(integer)
        .involution()
        .shape(shape::same_as_input)
        .gpu_elementwise(gpu::INTEGER, "~x")
        .cpu(per_dtype!(INTEGER, T => unary::<Not, T>()));
    c.op("PopulationCount")
        .doc("Element-wise number of bits that are 1.")
        .input("x: T")
        .output("y: uint8")
        .attr(integer)
        .shape(shape::same_as_input)
        .gpu_elementwise(gpu::INTEGER, BITS_SET)
        .cpu(per_dtype!(INTEGER, T => map::<PopulationCount, T, u8>()));
    c.no_gradient(&[
        "LogicalAnd",
        "LogicalOr",
        "LogicalNot",
        "BitwiseAnd",
        "BitwiseOr",
        "BitwiseXor",
        "LeftShift",
        "RightShift",
        "Invert",
        "PopulationCount",
    ]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    fn on<T: Element>(op: &str, a: &[T], b: &[T], want: &[T]) {
        check(op).input(Tensor::vector(a)).input(Tensor::vector(b)).gives(Tensor::vector(want));
    }

    #[test]
    fn bools() {
        let (p, q) = ([false, false, true, true], [false, true, false, true]);
        on("LogicalAnd", &p, &q, &[false, false, false, true]);
        on("LogicalOr", &p, &q, &[false, true, true, true]);
        check("LogicalNot").maps(p, [true, true, false, false]);
    }

    #[test]
    fn bits() {
        let (a, b) = ([0i16, 5, 77, 126], [1i16, 3, 6, 2]);
        on("BitwiseAnd", &a, &b, &[0, 1, 4, 2]);
        on("BitwiseOr", &a, &b, &[1, 7, 79, 126]);
        on("BitwiseXor", &a, &b, &[1, 6, 75, 124]);
        check("Invert").maps([0u8, 5], [255, 250]);
        check("PopulationCount")
            .input(Tensor::vector(&[1i32, 5, -1]))
            .gives(Tensor::vector(&[1u8, 2, 32]));
    }

    #[test]
    fn shifts_stop_at_the_width() {
        let by = [0, 1, 30, 31, 32, 64, -1, -32];
        let m = i32::MIN;
        on("LeftShift", &[5; 8], &by, &[5, 10, 1 << 30, m, m, m, 5, 5]);
        on("RightShift", &[-5; 8], &by, &[-5, -3, -1, -1, -1, -1, -5, -5]);
        on("RightShift", &[200u8; 4], &[0, 1, 7, 255], &[200, 100, 1, 1]);
        on("LeftShift", &[-5i8; 3], &[1, 7, 9], &[-10, -128, -128]);
    }
}
