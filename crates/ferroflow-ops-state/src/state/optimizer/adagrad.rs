//! Adagrad, its proximal variant, and dual averaging.

use super::descent::Shrink;
use super::{Apply, Field, Rule, Spec, Wide, declare};
use crate::prelude::*;

struct Adagrad<W> {
    rate: W,
    epsilon: W,
    update_slots: bool,
}

impl<W: Field> Rule<W, 2> for Adagrad<W> {
    #[inline]
    fn step(&self, [var, accum]: &mut [W; 2], grad: W) {
        if self.update_slots {
            *accum += grad * grad;
        }
        *var -= grad * self.rate / (accum.sqrt() + self.epsilon);
    }
}

static ADAGRAD: Spec = Spec {
    name: "Adagrad",
    doc: "A step of Adagrad.",
    slots: &["var", "accum"],
    args: &["lr", "grad"],
    choice: Some(("update_slots", true)),
    has_sparse: true,
    text: Some("if (choice) accum += grad * grad; var -= grad * lr / sqrt(accum);"),
    ..Spec::DENSE
};

static ADAGRAD_V2: Spec = Spec {
    name: "AdagradV2",
    doc: "A step of Adagrad.",
    slots: &["var", "accum"],
    args: &["lr", "epsilon", "grad"],
    choice: Some(("update_slots", true)),
    has_sparse: true,
    text: Some("if (choice) accum += grad * grad; var -= grad * lr / (sqrt(accum) + epsilon);"),
    ..Spec::DENSE
};

struct Proximal<W> {
    rate: W,
    shrink: Shrink<W>,
}

impl<W: Wide> Rule<W, 2> for Proximal<W> {
    #[inline]
    fn step(&self, [var, accum]: &mut [W; 2], grad: W) {
        *accum += grad * grad;
        let rate = self.rate / accum.sqrt();
        *var = self.shrink.apply(*var - grad * rate, rate);
    }
}

static PROXIMAL: Spec = Spec {
    name: "ProximalAdagrad",
    doc: "A step of Adagrad that shrinks the variable by L1 and L2 norms.",
    slots: &["var", "accum"],
    args: &["lr", "l1", "l2", "grad"],
    has_sparse: true,
    text: Some(
        "accum += grad * grad; W rate = lr / sqrt(accum); W prox = var - grad * rate; W scale = W(1) + l2 * rate; var = l1 > W(0) ? sign_of(prox) * larger(magnitude(prox) - rate * l1, W(0)) / scale : prox / scale;",
    ),
    ..Spec::DENSE
};

struct DualAveraging<W> {
    rate: W,
    l1: W,
    l2: W,
    step: W,
}

impl<W: Wide> Rule<W, 3> for DualAveraging<W> {
    #[inline]
    fn step(&self, [var, sum, squares]: &mut [W; 3], grad: W) {
        *sum += grad;
        *squares += grad * grad;
        let kept = if self.l1 > W::ZERO {
            sum.sign() * (Wide::abs(*sum) - self.l1 * self.step).at_least(W::ZERO)
        } else {
            *sum
        };
        *var = -(self.rate * kept) / (self.l2 * self.step * self.rate + squares.sqrt());
    }
}

static DUAL_AVERAGING: Spec = Spec {
    name: "AdagradDA",
    doc: "A step of Adagrad with dual averaging.",
    slots: &["var", "gradient_accumulator", "gradient_squared_accumulator"],
    args: &["grad", "lr", "l1", "l2", "global_step"],
    has_sparse: true,
    text: Some(
        "W &sum = gradient_accumulator; W &squares = gradient_squared_accumulator; W step = (W)global_step; sum += grad; squares += grad * grad; W kept = l1 > W(0) ? sign_of(sum) * larger(magnitude(sum) - l1 * step, W(0)) : sum; var = -(lr * kept) / (l2 * step * lr + sqrt(squares));",
    ),
    ..Spec::DENSE
};

pub(super) fn register(c: &mut Catalog) {
    declare(c, &ADAGRAD, |init| {
        per_dtype!(FLOAT_COMPLEX, init, T => Apply::<T, _, 2>::new(init, &ADAGRAD, |h, update_slots| {
            Adagrad { rate: h[0], epsilon: Field::ZERO, update_slots }
        })?)(init)
    });
    declare(c, &ADAGRAD_V2, |init| {
        per_dtype!(FLOAT_COMPLEX, init, T => Apply::<T, _, 2>::new(init, &ADAGRAD_V2, |h, update_slots| {
            Adagrad { rate: h[0], epsilon: h[1], update_slots }
        })?)(init)
    });
    declare(c, &PROXIMAL, |init| {
        per_dtype!(FLOAT, init, T => Apply::<T, _, 2>::new(init, &PROXIMAL, |h, _| {
            Proximal { rate: h[0], shrink: Shrink { l1: h[1], l2: h[2] } }
        })?)(init)
    });
    declare(c, &DUAL_AVERAGING, |init| {
        per_dtype!(FLOAT, init, T => Apply::<T, _, 3>::new(init, &DUAL_AVERAGING, |h, _| {
            DualAveraging { rate: h[0], l1: h[1], l2: h[2], step: h[3] }
        })?)(init)
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::on;
    use super::*;

    #[test]
    fn adagrad_steps_are_as_tensorflow_takes_them() {
        let accum: [f32; 6] = [0.35, 0.2625, 0.05, 1.025, 4.075, 0.315625];
        let before: [f32; 6] = [0.1, 0.2, 0.05, 0.025, 0.075, 0.3];
        let some_rows: [f32; 6] = [0.1, 1.2, 0.05, 0.025, 4.325, 0.378125];
        on(&ADAGRAD).gives(&[&[0.915485, -1.95121, 0.5, 0.151227, -0.849075, 3.02225], &accum]);
        on(&ADAGRAD)
            .choosing(false)
            .gives(&[&[0.841886, -1.9441, 0.5, -0.382456, -1.4803, 3.02282], &before]);
        on(&ADAGRAD).sparse().gives(&[&[1.0, -2.09129, 0.5, 0.25, -0.933875, 3.06185], &some_rows]);
        on(&ADAGRAD_V2).gives(&[&[0.915627, -1.9513, 0.5, 0.151325, -0.849026, 3.02221], &accum]);
        on(&ADAGRAD_V2)
            .choosing(false)
            .gives(&[&[0.842385, -1.94422, 0.5, -0.378481, -1.47764, 3.02278], &before]);
        on(&ADAGRAD_V2)
            .sparse()
            .gives(&[&[1.0, -2.0912, 0.5, 0.25, -0.933675, 3.06175], &some_rows]);
        on(&PROXIMAL).gives(&[&[0.903977, -1.9339, 0.473405, 0.146, -0.845761, 3.00266], &accum]);
        on(&PROXIMAL)
            .with("l1", 0.0)
            .gives(&[&[0.9124, -1.94362, 0.495568, 0.150929, -0.848235, 3.01153], &accum]);
        on(&PROXIMAL)
            .sparse()
            .gives(&[&[0.978003, -2.08292, 0.5, 0.25, -0.918919, 3.02553], &some_rows]);
    }

    #[test]
    fn dual_averaging_steps_are_as_tensorflow_takes_them() {
        let sums: [f32; 6] = [0.6, -0.05, 0.05, 1.025, 2.075, 0.175];
        let squares: [f32; 6] = [0.45, 0.4625, 0.1, 1.05, 4.15, 0.615625];
        on(&DUAL_AVERAGING).gives(&[
            &[-0.0664874, 0.0, 0.0, -0.0848942, -0.094217, -0.00316209],
            &sums,
            &squares,
        ]);
        on(&DUAL_AVERAGING).with("l1", 0.0).gives(&[
            &[-0.0886498, 0.00728785, -0.015517, -0.0994475, -0.101559, -0.0221346],
            &sums,
            &squares,
        ]);
        on(&DUAL_AVERAGING).sparse().gives(&[
            &[0.0, -0.0882935, 0.5, 0.25, -0.115278, 0.0],
            &[0.1, 1.2, 0.05, 0.025, 2.575, -0.075],
            &[0.2, 1.4, 0.1, 0.05, 4.4, 0.678125],
        ]);
    }
}
