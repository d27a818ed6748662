//! Momentum, as TensorFlow and as Keras define it.

use super::{Apply, Field, Rule, Spec, declare};
use crate::prelude::*;

struct Momentum<W> {
    rate: W,
    momentum: W,
    nesterov: bool,
}

impl<W: Field> Rule<W, 2> for Momentum<W> {
    #[inline]
    fn step(&self, [var, accum]: &mut [W; 2], grad: W) {
        *accum = *accum * self.momentum + grad;
        let ahead = if self.nesterov { grad + *accum * self.momentum } else { *accum };
        *var -= ahead * self.rate;
    }
}

static MOMENTUM: Spec = Spec {
    name: "Momentum",
    doc: "A step of gradient descent with momentum.",
    slots: &["var", "accum"],
    args: &["lr", "grad", "momentum"],
    choice: Some(("use_nesterov", false)),
    has_sparse: true,
    text: Some(
        "accum = accum * momentum + grad; var -= (choice ? grad + accum * momentum : accum) * lr;",
    ),
    ..Spec::DENSE
};

/// The accumulator holds steps, not gradients.
struct KerasMomentum<W>(Momentum<W>);

impl<W: Field> Rule<W, 2> for KerasMomentum<W> {
    #[inline]
    fn step(&self, [var, accum]: &mut [W; 2], grad: W) {
        let Momentum { rate, momentum, nesterov } = self.0;
        *accum = *accum * momentum - grad * rate;
        *var += if nesterov { *accum * momentum - grad * rate } else { *accum };
    }
}

static KERAS_MOMENTUM: Spec = Spec {
    name: "KerasMomentum",
    doc: "A step of gradient descent with momentum, where the accumulator holds steps.",
    slots: &["var", "accum"],
    args: &["lr", "grad", "momentum"],
    choice: Some(("use_nesterov", false)),
    has_ref: false,
    has_sparse: true,
    text: Some(
        "accum = accum * momentum - grad * lr; var += choice ? accum * momentum - grad * lr : accum;",
    ),
    ..Spec::DENSE
};

pub(super) fn register(c: &mut Catalog) {
    declare(c, &MOMENTUM, |init| {
        per_dtype!(FLOAT_COMPLEX, init, T => Apply::<T, _, 2>::new(init, &MOMENTUM, |h, nesterov| {
            Momentum { rate: h[0], momentum: h[1], nesterov }
        })?)(init)
    });
    declare(c, &KERAS_MOMENTUM, |init| {
        per_dtype!(FLOAT_COMPLEX, init, T => Apply::<T, _, 2>::new(init, &KERAS_MOMENTUM, |h, nesterov| {
            KerasMomentum(Momentum { rate: h[0], momentum: h[1], nesterov })
        })?)(init)
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::on;
    use super::*;

    #[test]
    fn steps_are_as_tensorflow_takes_them() {
        let accum: [f32; 6] = [0.58, -0.09, 0.04, 1.02, 2.06, 0.115];
        let some_rows: [f32; 6] = [0.08, 1.16, 0.05, 0.025, 2.448, -0.133];
        on(&MOMENTUM).gives(&[&[0.942, -1.991, 0.496, 0.148, -0.956, 2.9885], &accum]);
        on(&MOMENTUM)
            .choosing(true)
            .gives(&[&[0.9036, -1.9678, 0.4968, 0.0684, -1.1148, 3.0033], &accum]);
        on(&MOMENTUM).sparse().gives(&[&[0.992, -2.116, 0.5, 0.25, -1.0508, 3.0143], &some_rows]);
        on(&MOMENTUM)
            .sparse()
            .choosing(true)
            .gives(&[&[0.9936, -2.1928, 0.5, 0.25, -1.24064, 3.04894], &some_rows]);
    }

    #[test]
    fn keras_steps_are_as_tensorflow_takes_them() {
        let accum: [f32; 6] = [0.03, 0.185, 0.04, -0.08, -0.14, 0.2525];
        let some_rows: [f32; 6] = [0.08, 0.06, 0.05, 0.025, -0.192, 0.2245];
        on(&KERAS_MOMENTUM).gives(&[&[1.03, -1.815, 0.54, 0.17, -0.89, 3.2525], &accum]);
        on(&KERAS_MOMENTUM)
            .choosing(true)
            .gives(&[&[0.974, -1.827, 0.532, 0.086, -1.062, 3.2145], &accum]);
        on(&KERAS_MOMENTUM)
            .sparse()
            .gives(&[&[1.08, -1.94, 0.5, 0.25, -0.932, 3.4895], &some_rows]);
        on(&KERAS_MOMENTUM)
            .sparse()
            .choosing(true)
            .gives(&[&[1.064, -2.052, 0.5, 0.25, -1.1456, 3.4291], &some_rows]);
    }
}
