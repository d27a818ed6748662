//! Adadelta.

use super::{Apply, Field, Rule, Spec, declare};
use crate::prelude::*;

struct Adadelta<W> {
    rate: W,
    rho: W,
    epsilon: W,
}

impl<W: Field> Rule<W, 3> for Adadelta<W> {
    #[inline]
    fn step(&self, [var, accum, accum_update]: &mut [W; 3], grad: W) {
        let rest = W::ONE - self.rho;
        *accum = *accum * self.rho + grad * grad * rest;
        let update = (*accum_update + self.epsilon).sqrt() / (*accum + self.epsilon).sqrt() * grad;
        *var -= update * self.rate;
        *accum_update = *accum_update * self.rho + update * update * rest;
    }
}

static ADADELTA: Spec = Spec {
    name: "Adadelta",
    doc: "A step of Adadelta.",
    slots: &["var", "accum", "accum_update"],
    args: &["lr", "rho", "epsilon", "grad"],
    has_sparse: true,
    text: Some(
        "accum = accum * rho + grad * grad * (W(1) - rho); W update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * grad; var -= update * lr; accum_update = accum_update * rho + update * update * (W(1) - rho);",
    ),
    ..Spec::DENSE
};

pub(super) fn register(c: &mut Catalog) {
    declare(c, &ADADELTA, |init| {
        per_dtype!(FLOAT_COMPLEX, init, T => Apply::<T, _, 3>::new(init, &ADADELTA, |h, _| {
            Adadelta { rate: h[0], rho: h[1], epsilon: h[2] }
        })?)(init)
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::on;
    use super::*;

    #[test]
    fn steps_are_as_tensorflow_takes_them() {
        on(&ADADELTA).gives(&[
            &[0.934183, -1.96342, 0.5, 0.185738, -0.863544, 3.01856],
            &[0.115, 0.18625, 0.045, 0.1225, 0.4675, 0.271563],
            &[0.223319, 0.373385, 0.09, 0.0862955, 0.263922, 0.543445],
        ]);
        on(&ADADELTA).sparse().gives(&[
            &[1.0, -2.11946, 0.5, 0.25, -0.934242, 3.05538],
            &[0.09, 0.28, 0.05, 0.025, 0.48325, 0.250187],
            &[0.18, 0.502705, 0.1, 0.05, 0.303526, 0.501643],
        ]);
    }
}
