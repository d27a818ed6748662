//! Follow the regularized leader.

use super::{Apply, Field, Rule, Spec, Wide, declare};
use crate::prelude::*;

struct Ftrl<W> {
    rate: W,
    l1: W,
    l2: W,
    shrinkage: W,
    /// Minus the power the accumulator is raised to, or `None` for the square root.
    power: Option<W>,
    /// `linear` is kept multiplied by the learning rate.
    scaled: bool,
}

impl<W: Wide> Ftrl<W> {
    fn new(rate: W, l1: W, l2: W, shrinkage: W, lr_power: W, scaled: bool) -> Ftrl<W> {
        let power = Some(-lr_power).filter(|&p| p != W::from_f64(0.5));
        Ftrl { rate, l1, l2, shrinkage, power, scaled }
    }

    #[inline]
    fn root(&self, x: W) -> W {
        match self.power {
            Some(power) => x.powf(power),
            None => x.sqrt(),
        }
    }
}

impl<W: Wide> Rule<W, 3> for Ftrl<W> {
    const COST: usize = 20;
    #[inline]
    fn step(&self, [var, accum, linear]: &mut [W; 3], grad: W) {
        let two = W::ONE + W::ONE;
        let shrunk = grad + two * self.shrinkage * *var;
        let next = *accum + grad * grad;
        let root = self.root(next);
        let change = (root - self.root(*accum)) * *var;
        // Everything is divided by the learning rate, or `linear` multiplied by it.
        let (limit, slope) = if self.scaled {
            *linear += shrunk * self.rate - change;
            (self.l1 * self.rate, root + two * self.l2 * self.rate)
        } else {
            *linear += shrunk - change / self.rate;
            (self.l1, root / self.rate + two * self.l2)
        };
        *var = if Wide::abs(*linear) > limit {
            (limit * linear.sign() - *linear) / slope
        } else {
            W::ZERO
        };
        *accum = next;
    }
}

static FTRL: Spec = Spec {
    name: "Ftrl",
    doc: "A step of following the regularized leader.",
    slots: &["var", "accum", "linear"],
    args: &["grad", "lr", "l1", "l2", "lr_power"],
    choice: Some(("multiply_linear_by_lr", false)),
    has_sparse: true,
    text: Some(
        "W shrunk = grad + W(2) * W(0) * var; W next = accum + grad * grad; W root = pow(next, -lr_power); W change = (root - pow(accum, -lr_power)) * var; linear += choice ? shrunk * lr - change : shrunk - change / lr; W limit = choice ? l1 * lr : l1; W slope = choice ? root + W(2) * l2 * lr : root / lr + W(2) * l2; var = magnitude(linear) > limit ? (limit * sign_of(linear) - linear) / slope : W(0); accum = next;",
    ),
    ..Spec::DENSE
};

static FTRL_V2: Spec = Spec {
    name: "FtrlV2",
    doc: "A step of following the regularized leader, with shrinkage.",
    slots: &["var", "accum", "linear"],
    args: &["grad", "lr", "l1", "l2", "l2_shrinkage", "lr_power"],
    choice: Some(("multiply_linear_by_lr", false)),
    has_sparse: true,
    text: Some(
        "W shrunk = grad + W(2) * l2_shrinkage * var; W next = accum + grad * grad; W root = pow(next, -lr_power); W change = (root - pow(accum, -lr_power)) * var; linear += choice ? shrunk * lr - change : shrunk - change / lr; W limit = choice ? l1 * lr : l1; W slope = choice ? root + W(2) * l2 * lr : root / lr + W(2) * l2; var = magnitude(linear) > limit ? (limit * sign_of(linear) - linear) / slope : W(0); accum = next;",
    ),
    ..Spec::DENSE
};

pub(super) fn register(c: &mut Catalog) {
    declare(c, &FTRL, |init| {
        per_dtype!(FLOAT, init, T => Apply::<T, _, 3>::new(init, &FTRL, |h, scaled| {
            Ftrl::new(h[0], h[1], h[2], Field::ZERO, h[3], scaled)
        })?)(init)
    });
    declare(c, &FTRL_V2, |init| {
        per_dtype!(FLOAT, init, T => Apply::<T, _, 3>::new(init, &FTRL_V2, |h, scaled| {
            Ftrl::new(h[0], h[1], h[2], h[3], h[4], scaled)
        })?)(init)
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::on;
    use super::*;

    const ACCUM: [f32; 6] = [0.35, 0.2625, 0.05, 1.025, 4.075, 0.315625];
    const SOME_ROWS: [f32; 6] = [0.1, 1.2, 0.05, 0.025, 4.325, 0.378125];

    #[test]
    fn steps_are_as_tensorflow_takes_them() {
        on(&FTRL).gives(&[
            &[0.33643, -0.271654, -0.0219677, 0.101904, -0.750793, -0.000446],
            &ACCUM,
            &[-2.0538, 1.45268, 0.1, -1.08577, 15.236, 0.0525235],
        ]);
        on(&FTRL).choosing(true).gives(&[
            &[0.0342175, -0.968859, -0.417387, 0.0576308, -0.817537, -0.954838],
            &ACCUM,
            &[-0.0253802, 0.505268, 0.1, -0.0635772, 1.6586, 0.545252],
        ]);
        on(&FTRL).with("lr_power", -0.7).gives(&[
            &[0.424015, -0.368412, -0.0394251, 0.122824, -0.781615, 0.0],
            &ACCUM,
            &[-2.10039, 1.50926, 0.1, -1.30457, 20.9782, 0.00772524],
        ]);
        on(&FTRL).sparse().gives(&[
            &[-0.0468417, -1.30199, 0.5, 0.25, -0.587495, 0.223258],
            &SOME_ROWS,
            &[0.2, 14.3646, 0.1, 0.05, 12.2914, -1.43179],
        ]);
        on(&FTRL).sparse().choosing(true).gives(&[
            &[-0.608942, -1.62942, 0.5, 0.25, -0.82265, -0.651214],
            &SOME_ROWS,
            &[0.2, 1.79646, 0.1, 0.05, 1.71913, 0.408049],
        ]);
        on(&FTRL).sparse().with("lr_power", -0.7).gives(&[
            &[-0.0737006, -1.5428, 0.5, 0.25, -0.679375, 0.312977],
            &SOME_ROWS,
            &[0.2, 17.6399, 0.1, 0.05, 19.0137, -1.64689],
        ]);
    }

    #[test]
    fn steps_with_shrinkage_are_as_tensorflow_takes_them() {
        on(&FTRL_V2).gives(&[
            &[0.302851, -0.194187, -0.0659031, 0.0969845, -0.743377, -0.10649],
            &ACCUM,
            &[-1.8538, 1.05268, 0.2, -1.03577, 15.086, 0.652524],
        ]);
        on(&FTRL_V2).choosing(true).with("lr_power", -0.7).gives(&[
            &[0.0104204, -1.1763, -0.827927, 0.0738737, -0.826432, -1.32368],
            &ACCUM,
            &[-0.010039, 0.470926, 0.11, -0.0804572, 2.21782, 0.600773],
        ]);
        on(&FTRL_V2).sparse().gives(&[
            &[-0.109297, -1.2656, 0.5, 0.25, -0.556899, 0.120898],
            &SOME_ROWS,
            &[0.4, 13.9646, 0.1, 0.05, 11.6539, -0.798263],
        ]);
        on(&FTRL_V2).sparse().choosing(true).gives(&[
            &[-0.671397, -1.59304, 0.5, 0.25, -0.789798, -0.725316],
            &SOME_ROWS,
            &[0.22, 1.75646, 0.1, 0.05, 1.65067, 0.453912],
        ]);
    }
}
