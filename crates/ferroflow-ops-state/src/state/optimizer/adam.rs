//! Adam, AdaMax and AMSGrad.

use super::{Apply, Field, Rule, Spec, Wide, declare};
use crate::prelude::*;

struct Adam<W> {
    /// The learning rate, corrected for the bias of the moments.
    rate: W,
    beta1: W,
    beta2: W,
    epsilon: W,
    nesterov: bool,
}

impl<W: Field> Adam<W> {
    fn new(h: &[W], nesterov: bool) -> Adam<W> {
        let [beta1_power, beta2_power, rate, beta1, beta2, epsilon] = h else {
            unreachable!("the ops have six scalars");
        };
        let rate = *rate * (W::ONE - *beta2_power).sqrt() / (W::ONE - *beta1_power);
        Adam { rate, beta1: *beta1, beta2: *beta2, epsilon: *epsilon, nesterov }
    }

    #[inline]
    fn moments(&self, m: &mut W, v: &mut W, grad: W) {
        *m += (grad - *m) * (W::ONE - self.beta1);
        *v += (grad * grad - *v) * (W::ONE - self.beta2);
    }
}

impl<W: Field> Rule<W, 3> for Adam<W> {
    #[inline]
    fn step(&self, [var, m, v]: &mut [W; 3], grad: W) {
        self.moments(m, v, grad);
        let ahead = if self.nesterov { *m * self.beta1 + (W::ONE - self.beta1) * grad } else { *m };
        *var -= ahead * self.rate / (v.sqrt() + self.epsilon);
    }
}

static ADAM: Spec = Spec {
    name: "Adam",
    doc: "A step of Adam.",
    slots: &["var", "m", "v"],
    args: &["beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"],
    choice: Some(("use_nesterov", false)),
    text: Some(
        "W rate = lr * sqrt(W(1) - beta2_power) / (W(1) - beta1_power); m += (grad - m) * (W(1) - beta1); v += (grad * grad - v) * (W(1) - beta2); var -= (choice ? m * beta1 + (W(1) - beta1) * grad : m) * rate / (sqrt(v) + epsilon);",
    ),
    ..Spec::DENSE
};

struct Amsgrad<W>(Adam<W>);

impl<W: Wide> Rule<W, 4> for Amsgrad<W> {
    #[inline]
    fn step(&self, [var, m, v, largest]: &mut [W; 4], grad: W) {
        self.0.moments(m, v, grad);
        *largest = largest.at_least(*v);
        *var -= *m * self.0.rate / (largest.sqrt() + self.0.epsilon);
    }
}

static AMSGRAD: Spec = Spec {
    name: "AdamWithAmsgrad",
    doc: "A step of Adam by the largest second moment there was.",
    slots: &["var", "m", "v", "vhat"],
    args: &["beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"],
    has_ref: false,
    text: Some(
        "W rate = lr * sqrt(W(1) - beta2_power) / (W(1) - beta1_power); m += (grad - m) * (W(1) - beta1); v += (grad * grad - v) * (W(1) - beta2); vhat = vhat < v ? v : vhat; var -= m * rate / (sqrt(vhat) + epsilon);",
    ),
    ..Spec::DENSE
};

struct AdaMax<W> {
    rate: W,
    beta1: W,
    beta2: W,
    epsilon: W,
}

impl<W: Wide> Rule<W, 3> for AdaMax<W> {
    #[inline]
    fn step(&self, [var, m, v]: &mut [W; 3], grad: W) {
        *m += (grad - *m) * (W::ONE - self.beta1);
        *v = (self.beta2 * *v).at_least(grad.abs());
        *var -= self.rate * (*m / (*v + self.epsilon));
    }
}

static ADAMAX: Spec = Spec {
    name: "AdaMax",
    doc: "A step of AdaMax.",
    slots: &["var", "m", "v"],
    args: &["beta1_power", "lr", "beta1", "beta2", "epsilon", "grad"],
    text: Some(
        "m += (grad - m) * (W(1) - beta1); v = beta2 * v < magnitude(grad) ? magnitude(grad) : beta2 * v; var -= lr / (W(1) - beta1_power) * (m / (v + epsilon));",
    ),
    ..Spec::DENSE
};

pub(super) fn register(c: &mut Catalog) {
    declare(c, &ADAM, |init| {
        per_dtype!(FLOAT_COMPLEX, init, T => Apply::<T, _, 3>::new(init, &ADAM, Adam::new)?)(init)
    });
    declare(c, &AMSGRAD, |init| {
        per_dtype!(FLOAT, init, T => Apply::<T, _, 4>::new(init, &AMSGRAD, |h, _| {
            Amsgrad(Adam::new(h, false))
        })?)(init)
    });
    declare(c, &ADAMAX, |init| {
        per_dtype!(FLOAT, init, T => Apply::<T, _, 3>::new(init, &ADAMAX, |h, _| {
            AdaMax {
                rate: h[1] / (<<T as Float>::Wide as Field>::ONE - h[0]),
                beta1: h[2],
                beta2: h[3],
                epsilon: h[4],
            }
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
        let v: [f32; 6] = [0.2005, 0.396625, 0.099, 0.0595, 0.1885, 0.594156];
        on(&ADAM).gives(&[&[0.968804, -2.02457, 0.485743, 0.199985, -0.811471, 2.96664], &m, &v]);
        on(&ADAM).choosing(true).gives(&[
            &[0.960782, -2.01815, 0.487169, 0.164158, -0.851283, 2.97159],
            &m,
            &v,
        ]);
        on(&AMSGRAD).gives(&[
            &[0.974486, -2.01998, 0.488411, 0.205432, -0.806275, 2.97289],
            &m,
            &v,
            &[0.3, 0.6, 0.15, 0.075, 0.225, 0.9],
        ]);
        on(&ADAMAX).gives(&[
            &[0.720559, -2.39043, 0.0500001, 0.127622, -0.883683, 2.56723],
            &m,
            &[0.5, 0.396, 0.099, 1.0, 2.0, 0.594],
        ]);
    }
}
