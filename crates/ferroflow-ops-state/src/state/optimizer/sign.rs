//! Steps scaled by whether the gradient agrees in sign with its average: AddSign and PowerSign.

use super::{Apply, Rule, Spec, Wide, declare};
use crate::prelude::*;

struct AddSign<W> {
    rate: W,
    alpha: W,
    sign_decay: W,
    beta: W,
}

/// Updates the average, and returns whether the gradient agrees with it.
fn agreement<W: Wide>(m: &mut W, beta: W, grad: W) -> W {
    *m = *m * beta + grad * (W::ONE - beta);
    grad.sign() * m.sign()
}

impl<W: Wide> Rule<W, 2> for AddSign<W> {
    #[inline]
    fn step(&self, [var, m]: &mut [W; 2], grad: W) {
        let agreement = agreement(m, self.beta, grad);
        *var -= self.rate * (self.alpha + self.sign_decay * agreement) * grad;
    }
}

static ADD_SIGN: Spec = Spec {
    name: "AddSign",
    doc: "A step of AddSign.",
    slots: &["var", "m"],
    args: &["lr", "alpha", "sign_decay", "beta", "grad"],
    text: Some(
        "m = m * beta + grad * (W(1) - beta); var -= lr * (alpha + sign_decay * sign_of(grad) * sign_of(m)) * grad;",
    ),
    ..Spec::DENSE
};

struct PowerSign<W> {
    rate: W,
    log_base: W,
    sign_decay: W,
    beta: W,
}

impl<W: Wide> Rule<W, 2> for PowerSign<W> {
    const COST: usize = 20;
    #[inline]
    fn step(&self, [var, m]: &mut [W; 2], grad: W) {
        let agreement = agreement(m, self.beta, grad);
        *var -= self.rate * (self.log_base * self.sign_decay * agreement).exp() * grad;
    }
}

static POWER_SIGN: Spec = Spec {
    name: "PowerSign",
    doc: "A step of PowerSign.",
    slots: &["var", "m"],
    args: &["lr", "logbase", "sign_decay", "beta", "grad"],
    text: Some(
        "m = m * beta + grad * (W(1) - beta); var -= lr * exp(logbase * sign_decay * sign_of(grad) * sign_of(m)) * grad;",
    ),
    ..Spec::DENSE
};

pub(super) fn register(c: &mut Catalog) {
    declare(c, &ADD_SIGN, |init| {
        per_dtype!(FLOAT, init, T => Apply::<T, _, 2>::new(init, &ADD_SIGN, |h, _| {
            AddSign { rate: h[0], alpha: h[1], sign_decay: h[2], beta: h[3] }
        })?)(init)
    });
    declare(c, &POWER_SIGN, |init| {
        per_dtype!(FLOAT, init, T => Apply::<T, _, 2>::new(init, &POWER_SIGN, |h, _| {
            PowerSign { rate: h[0], log_base: h[1], sign_decay: h[2], beta: h[3] }
        })?)(init)
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::on;
    use super::*;

    #[test]
    fn steps_are_as_tensorflow_takes_them() {
        let m: [f32; 6] = [0.14, 0.155, 0.045, 0.1225, 0.2675, 0.2575];
        on(&ADD_SIGN).gives(&[&[0.96, -2.015, 0.5, 0.17, -0.91, 2.9925], &m]);
        on(&POWER_SIGN).gives(&[&[0.899312, -1.98759, 0.5, 0.0486247, -1.15275, 3.00621], &m]);
    }
}
