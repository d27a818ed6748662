//! Gradient descent, plain and proximal.

use super::{Apply, Field, Rule, Spec, Wide, declare};
use crate::prelude::*;

struct Descent<W> {
    rate: W,
}

impl<W: Field> Rule<W, 1> for Descent<W> {
    #[inline]
    fn step(&self, [var]: &mut [W; 1], grad: W) {
        *var -= self.rate * grad;
    }
}

static DESCENT: Spec = Spec {
    name: "GradientDescent",
    doc: "A step of gradient descent.",
    slots: &["var"],
    args: &["alpha", "delta"],
    text: Some("var -= alpha * delta;"),
    ..Spec::DENSE
};

/// Shrinks towards zero: what the proximal operators of the L1 and L2 norms do to a step.
pub(super) struct Shrink<W> {
    pub(super) l1: W,
    pub(super) l2: W,
}

impl<W: Wide> Shrink<W> {
    #[inline]
    pub(super) fn apply(&self, prox: W, rate: W) -> W {
        let scale = W::ONE + self.l2 * rate;
        if self.l1 > W::ZERO {
            prox.sign() * (Wide::abs(prox) - rate * self.l1).at_least(W::ZERO) / scale
        } else {
            prox / scale
        }
    }
}

struct Proximal<W> {
    rate: W,
    shrink: Shrink<W>,
}

impl<W: Wide> Rule<W, 1> for Proximal<W> {
    #[inline]
    fn step(&self, [var]: &mut [W; 1], grad: W) {
        *var = self.shrink.apply(*var - self.rate * grad, self.rate);
    }
}

static PROXIMAL: Spec = Spec {
    name: "ProximalGradientDescent",
    doc: "A step of gradient descent that shrinks the variable by L1 and L2 norms.",
    slots: &["var"],
    args: &["alpha", "l1", "l2", "delta"],
    has_sparse: true,
    text: Some(
        "W rate = alpha; W prox = var - rate * delta; W scale = W(1) + l2 * rate; var = l1 > W(0) ? sign_of(prox) * larger(magnitude(prox) - rate * l1, W(0)) / scale : prox / scale;",
    ),
    ..Spec::DENSE
};

pub(super) fn register(c: &mut Catalog) {
    declare(c, &DESCENT, |init| {
        per_dtype!(FLOAT_COMPLEX, init, T => Apply::<T, _, 1>::new(init, &DESCENT, |h, _| {
            Descent { rate: h[0] }
        })?)(init)
    });
    declare(c, &PROXIMAL, |init| {
        per_dtype!(FLOAT, init, T => Apply::<T, _, 1>::new(init, &PROXIMAL, |h, _| {
            Proximal { rate: h[0], shrink: Shrink { l1: h[1], l2: h[2] } }
        })?)(init)
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Case, on};
    use super::*;

    #[test]
    fn steps_are_as_tensorflow_takes_them() {
        on(&DESCENT).gives(&[&[0.95, -1.975, 0.5, 0.15, -0.95, 3.0125]]);
        on(&PROXIMAL).gives(&[&[0.943114, -1.96607, 0.494012, 0.144711, -0.943114, 3.0015]]);
        on(&PROXIMAL)
            .with("l1", 0.0)
            .gives(&[&[0.948104, -1.97106, 0.499002, 0.149701, -0.948104, 3.00649]]);
        on(&PROXIMAL).sparse().gives(&[&[0.993014, -2.09082, 0.5, 0.25, -0.98644, 3.01544]]);
    }

    #[test]
    fn wrong_inputs_are_refused() {
        let case = Case::new("ApplyGradientDescent", &[Tensor::vector(&[1.0f32, 2.0, 3.0])]);
        let scalar = || Tensor::scalar(1.0f32);
        case.fails(
            &[scalar(), Tensor::vector(&[1.0f32, 2.0])],
            "var and delta do not have the same shape[3] [2]",
        );
        case.fails(
            &[Tensor::vector(&[1.0f32]), Tensor::vector(&[1.0f32, 2.0, 3.0])],
            "alpha is not a scalar: [1]",
        );
        let matrix = Tensor::from_slice([2, 2], &[1.0f32; 4]).unwrap();
        let case = Case::new("SparseApplyProximalGradientDescent", &[matrix]);
        let row = |n: usize| Tensor::from_slice([1, n], &vec![1.0f32; n]).unwrap();
        let fails = |grad: Tensor, indices: &[i32], text: &str| {
            case.fails(&[scalar(), scalar(), scalar(), grad, Tensor::vector(indices)], text);
        };
        fails(row(2), &[5], "Index 5 at offset 0 in indices is out of range");
        fails(row(2), &[-1], "Index -1 at offset 0 in indices is out of range");
        fails(row(2), &[0, 1], "grad must be the same size as indices in the first dimension.");
        fails(row(3), &[0], "var and grad must match in dimension 1");
        fails(Tensor::vector(&[1.0f32]), &[0], "var and grad must match in dimension 1");
    }

    #[test]
    fn large_variables_are_updated_in_parts() {
        let n = 100_003;
        let ones = Tensor::from_slice([n], &vec![1.0f32; n]).unwrap();
        let grad: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let case = Case::new("ApplyGradientDescent", &[ones]);
        let got = case.after(&[Tensor::scalar(0.5f32), Tensor::vector(&grad)]);
        let got = got[0].as_slice::<f32>().unwrap();
        assert!(got.iter().enumerate().all(|(i, &x)| x == 1.0 - 0.5 * i as f32));
    }

    #[test]
    fn half_types_are_computed_in_float() {
        let case = Case::new("ApplyGradientDescent", &[Tensor::vector(&[f16::ONE])]);
        let half = |x: f32| f16::from_f32(x);
        let got = case.after(&[Tensor::scalar(half(0.25)), Tensor::vector(&[half(2.0)])]);
        assert_eq!(got[0], Tensor::vector(&[half(0.5)]));
    }
}
