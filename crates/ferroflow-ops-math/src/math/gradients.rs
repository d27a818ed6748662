//! Gradients of unary functions from their results: `z = f(y, dy)`.

use super::blocks;
use super::broadcast::Broadcast;
use super::elementwise::{BinaryKernel, binary};
use super::lanes::Lanes;
use crate::prelude::*;
use ferroflow_op_kit::gpu;
use ferroflow_op_kit::vector::Binary;

/// Conjugates; reals are their own.
trait Conj: Num {
    fn conj(self) -> Self;
}
macro_rules! conj {
    ($($t:ty: $conj:expr),*) => {$(
        impl Conj for $t {
            #[inline(always)]
            fn conj(self) -> Self { ($conj)(self) }
        }
    )*};
}
conj!(f32: |x| x, f64: |x| x, Complex32: |z: Complex32| Complex32::new(z.re, -z.im), Complex64: |z: Complex64| Complex64::new(z.re, -z.im));

/// A formula over two inputs with the same number of elements. The output has the shape of the
/// first.
struct Pairwise<W: Element, T: Lanes<W>>(BinaryKernel<W, T>);

impl<W: Element, T: Lanes<W>> Kernel for Pairwise<W, T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (a, b) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            a.elements() == b.elements(),
            InvalidArgument,
            "The two arguments to a cwise op must have same number of elements, got {} and {}",
            a.elements(),
            b.elements()
        );
        if a.shape() == b.shape() {
            return self.0.compute_direct(ctx, None);
        }
        let plan = Broadcast::new([a.shape(), a.shape()]);
        self.0.compute_as(ctx, &plan.expect("a shape fits itself"))
    }
}

/// `z`, but zero where `dy` is zero, even for infinite results.
#[inline(always)]
fn unless_zero<T: Num>(dy: T, z: T) -> T {
    if dy == T::ZERO { T::ZERO } else { z }
}

/// Rows of `op, doc, f(x, y) on GPUs, f(y, dy)`.
macro_rules! gradients {
    ($c:ident; $($op:literal, $doc:literal, $text:literal, |$y:ident, $dy:ident| $formula:expr;)*) => {$({
        struct Op;
        impl<T: Conj> Binary<T> for Op {
            #[inline(always)]
            fn eval($y: T, $dy: T) -> T { $formula }
        }
        $c.op($op)
            .doc($doc)
            .input("y: T")
            .input("dy: T")
            .output("z: T")
            .attr("T: {bfloat16, half, float, double, complex64, complex128}")
            .shape(shape::same_as_input)
            .blocks(blocks::pair::<Op>)
            .gpu_pair(gpu::FLOAT, $text)
            .cpu(per_dtype!(FLOAT_COMPLEX, T => Pairwise(binary::<Op, T>())));
    })*};
}

/// Rows of `op: (gradient for y, gradient for dy)`.
macro_rules! second_gradients {
    ($c:ident; $($op:literal: |$g:ident, $dz:ident, $a:ident, $b:ident, $z:ident| $formula:expr;)*) => {$(
        $c.gradient($op, |$g, dy| {
            let ($dz, $a, $b, $z) = (dy[0], $g.input(0), $g.input(1), $g.output(0));
            let _ = ($b, $z);
            let (a, b) = $formula;
            Ok(vec![a, b])
        });
    )*};
}

pub(crate) fn register(c: &mut Catalog) {
    gradients! { c;
        "SqrtGrad", "Gradient of `y = sqrt(x)`: `dy / 2y`.",
            "y == W(0) ? W(0) : y / (x + x)",
            |y, dy| unless_zero(dy, dy.div(y.conj().add(y.conj())));
        "RsqrtGrad", "Gradient of `y = 1 / sqrt(x)`: `-dy y^3 / 2`.",
            "y == W(0) ? W(0) : y * (x * x) * (x / W(-2))",
            |y, dy| {
                let y = y.conj();
                unless_zero(dy, dy.mul(y.mul(y)).mul(y.div(T::from_i64(-2))))
            };
        "ReciprocalGrad", "Gradient of `y = 1 / x`: `-dy y^2`.",
            "y == W(0) ? W(0) : -y * (x * x)",
            |y, dy| unless_zero(dy, dy.neg().mul(y.conj().mul(y.conj())));
        "InvGrad", "Gradient of `y = 1 / x`: `-dy y^2`.",
            "y == W(0) ? W(0) : -y * (x * x)",
            |y, dy| unless_zero(dy, dy.neg().mul(y.conj().mul(y.conj())));
        "SigmoidGrad", "Gradient of `y = sigmoid(x)`: `dy y (1 - y)`.",
            "y * x * (W(1) - x)",
            |y, dy| dy.mul(y).mul(T::ONE.sub(y));
        "TanhGrad", "Gradient of `y = tanh(x)`: `dy (1 - y^2)`.",
            "y * (W(1) - x * x)",
            |y, dy| dy.mul(T::ONE.sub(y.mul(y)));
    }

    // Gradients of gradients, for second derivatives: `a` is y, `b` is dy.
    second_gradients! { c;
        "SqrtGrad": |g, dz, a, b, z| {
            let over = dz / a;
            (-(over.conj() * z), over * 0.5)
        };
        "RsqrtGrad": |g, dz, a, b, z| {
            let (ca, cg) = (a.conj(), dz.conj());
            (cg * -1.5 * b * ca.square(), g.call("RsqrtGrad", &[ca, dz]))
        };
        "ReciprocalGrad": |g, dz, a, b, z| {
            let (ca, cg) = (a.conj(), dz.conj());
            (cg * -2.0 * b * ca, g.call("ReciprocalGrad", &[ca, dz]))
        };
        "InvGrad": |g, dz, a, b, z| {
            let (ca, cg) = (a.conj(), dz.conj());
            (cg * -2.0 * b * ca, g.call("ReciprocalGrad", &[ca, dz]))
        };
        "SigmoidGrad": |g, dz, a, b, z| {
            let a = a.conj();
            let gb = dz * b.conj();
            (gb - gb * 2.0 * a, g.call("SigmoidGrad", &[a, dz]))
        };
        "TanhGrad": |g, dz, a, b, z| {
            let a = a.conj();
            (dz * -2.0 * b.conj() * a, g.call("TanhGrad", &[a, dz]))
        };
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn gradients_have_their_values() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let (y, dy) = ([0.5f32, 2.0, nan, 0.0, 3.0], [2.0f32, 3.0, 1.0, 1.0, inf]);
        let rows: [(&str, [f32; 5]); 6] = [
            ("SqrtGrad", [2.0, 0.75, nan, inf, inf]),
            ("RsqrtGrad", [-0.125, -12.0, nan, 0.0, -inf]),
            ("ReciprocalGrad", [-0.5, -12.0, nan, 0.0, -inf]),
            ("InvGrad", [-0.5, -12.0, nan, 0.0, -inf]),
            ("SigmoidGrad", [0.5, -6.0, nan, 0.0, -inf]),
            ("TanhGrad", [1.5, -9.0, nan, 1.0, -inf]),
        ];
        for (op, want) in rows {
            let (y, dy) = (Tensor::vector(&y), Tensor::vector(&dy));
            check(op).input(y).input(dy).gives(Tensor::vector(&want));
        }
    }

    #[test]
    fn complex_gradients_are_those_of_tensorflow() {
        let z = |re, im| Complex32::new(re, im);
        let rows = [
            ("SqrtGrad", z(0.4, 0.8)),
            ("RsqrtGrad", z(1.375, -0.25)),
            ("ReciprocalGrad", z(1.5, 2.0)),
            ("SigmoidGrad", z(2.5, 0.0)),
            ("TanhGrad", z(3.5, -2.0)),
        ];
        for (op, want) in rows {
            let (y, dy) = (Tensor::scalar(z(0.5, 1.0)), Tensor::scalar(z(2.0, 0.0)));
            check(op).input(y).input(dy).gives(Tensor::scalar(want));
        }
        let (y, dy) = (Tensor::scalar(z(1.5, -0.5)), Tensor::scalar(z(0.25, -2.5)));
        check("SigmoidGrad").input(y).input(dy).gives(Tensor::scalar(z(2.375, 1.5)));
    }

    #[test]
    fn nothing_comes_back_where_no_gradient_goes_in() {
        for op in ["SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"] {
            let (y, dy) = (Tensor::vector(&[f32::INFINITY, 0.0]), Tensor::vector(&[0.0f32, 0.0]));
            check(op).input(y).input(dy).gives(Tensor::vector(&[0.0f32, 0.0]));
        }
    }

    #[test]
    fn both_inputs_have_as_many_elements() {
        let v = |n: usize| Tensor::zeros(DType::Float, [n]).unwrap();
        check("TanhGrad").input(v(2)).input(v(3)).fails(
            Code::InvalidArgument,
            "The two arguments to a cwise op must have same number of elements, got 2 and 3",
        );
    }
}
