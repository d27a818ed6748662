//! RMSProp, plain and centered.

use super::{Apply, Field, Rule, Spec, declare};
use crate::prelude::*;

struct RmsProp<W> {
    rate: W,
    rho: W,
    momentum: W,
    epsilon: W,
}

impl<W: Field> RmsProp<W> {
    fn new(h: &[W], _: bool) -> RmsProp<W> {
        RmsProp { rate: h[0], rho: h[1], momentum: h[2], epsilon: h[3] }
    }
}

impl<W: Field> Rule<W, 3> for RmsProp<W> {
    #[inline]
    fn step(&self, [var, ms, mom]: &mut [W; 3], grad: W) {
        *ms += (grad * grad - *ms) * (W::ONE - self.rho);
        *mom = *mom * self.momentum + grad * self.rate / (*ms + self.epsilon).sqrt();
        *var -= *mom;
    }
}

static RMSPROP: Spec = Spec {
    name: "RMSProp",
    doc: "A step of RMSProp.",
    slots: &["var", "ms", "mom"],
    args: &["lr", "rho", "momentum", "epsilon", "grad"],
    has_sparse: true,
    text: Some(
        "ms += (grad * grad - ms) * (W(1) - rho); mom = mom * momentum + grad * lr / sqrt(ms + epsilon); var -= mom;",
    ),
    ..Spec::DENSE
};

struct Centered<W>(RmsProp<W>);

impl<W: Field> Rule<W, 4> for Centered<W> {
    #[inline]
    fn step(&self, [var, mg, ms, mom]: &mut [W; 4], grad: W) {
        let RmsProp { rate, rho, momentum, epsilon } = self.0;
        *ms += (grad * grad - *ms) * (W::ONE - rho);
        *mg += (grad - *mg) * (W::ONE - rho);
        *mom = *mom * momentum + grad * rate / (*ms - *mg * *mg + epsilon).sqrt();
        *var -= *mom;
    }
}

static CENTERED: Spec = Spec {
    name: "CenteredRMSProp",
    doc: "A step of RMSProp by the variance of the gradient.",
    slots: &["var", "mg", "ms", "mom"],
    args: &["lr", "rho", "momentum", "epsilon", "grad"],
    has_sparse: true,
    text: Some(
        "ms += (grad * grad - ms) * (W(1) - rho); mg += (grad - mg) * (W(1) - rho); mom = mom * momentum + grad * lr / sqrt(ms - mg * mg + epsilon); var -= mom;",
    ),
    ..Spec::DENSE
};

pub(super) fn register(c: &mut Catalog) {
    declare(c, &RMSPROP, |init| {
        per_dtype!(FLOAT_COMPLEX, init, T => Apply::<T, _, 3>::new(init, &RMSPROP, RmsProp::new)?)(
            init,
        )
    });
    declare(c, &CENTERED, |init| {
        per_dtype!(FLOAT_COMPLEX, init, T => Apply::<T, _, 4>::new(init, &CENTERED, |h, _| {
            Centered(RmsProp::new(h, false))
        })?)(init)
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::on;
    use super::*;

    #[test]
    fn steps_are_as_tensorflow_takes_them() {
        on(&RMSPROP).gives(&[
            &[0.693195, -2.26223, 0.42, -0.0745552, -1.1622, 2.54394],
            &[0.115, 0.18625, 0.045, 0.1225, 0.4675, 0.271563],
            &[0.306805, 0.262226, 0.08, 0.324555, 0.412197, 0.456057],
        ]);
        on(&RMSPROP).sparse().gives(&[
            &[0.84, -2.50865, 0.5, 0.25, -1.54774, 2.2464],
            &[0.09, 0.28, 0.05, 0.025, 0.48325, 0.250187],
            &[0.16, 0.508646, 0.1, 0.05, 0.51422, 0.321076],
        ]);
        on(&CENTERED).gives(&[
            &[0.64419, -2.43733, 0.38, -0.0862961, -1.22347, 2.29811],
            &[0.14, 0.155, 0.045, 0.1225, 0.2675, 0.2575],
            &[0.205, 0.36625, 0.09, 0.145, 0.535, 0.541562],
            &[0.35581, 0.437327, 0.12, 0.336296, 0.47347, 0.701887],
        ]);
        on(&CENTERED).sparse().gives(&[
            &[0.76, -2.64167, 0.5, 0.25, -1.60622, 1.78708],
            &[0.09, 0.28, 0.05, 0.025, 0.30575, 0.208],
            &[0.18, 0.46, 0.1, 0.05, 0.544, 0.493188],
            &[0.24, 0.641669, 0.15, 0.075, 0.545901, 0.528733],
        ]);
    }
}
