//! `on(&ADAM).gives(..)`: one step of an optimizer from fixed values, compared with TensorFlow's.

use super::Spec;
use crate::prelude::*;
use crate::state::testing::Held;
use ferroflow_testing::assert_close;

const VAR: [f64; 6] = [1.0, -2.0, 0.5, 0.25, -0.75, 3.0];
const GRAD: [f64; 6] = [0.5, -0.25, 0.0, 1.0, 2.0, -0.125];
const ROWS: [i64; 3] = [2, 0, 2];

/// The scalars, by the names of the inputs.
const SCALARS: [(&str, f64); 16] = [
    ("lr", 0.1),
    ("alpha", 0.1),
    ("rho", 0.9),
    ("momentum", 0.8),
    ("epsilon", 1e-3),
    ("l1", 0.05),
    ("l2", 0.02),
    ("l2_shrinkage", 0.1),
    ("lr_power", -0.5),
    ("beta1_power", 0.9),
    ("beta2_power", 0.99),
    ("beta1", 0.9),
    ("beta2", 0.99),
    ("logbase", 1.0),
    ("sign_decay", 0.7),
    ("beta", 0.9),
];

pub(super) struct On {
    spec: &'static Spec,
    sparse: bool,
    choice: Option<bool>,
    scalars: Vec<(&'static str, f64)>,
}

pub(super) fn on(spec: &'static Spec) -> On {
    On { spec, sparse: false, choice: None, scalars: SCALARS.to_vec() }
}

impl On {
    pub(super) fn sparse(mut self) -> On {
        self.sparse = true;
        self
    }

    /// Sets the op's choice.
    pub(super) fn choosing(mut self, choice: bool) -> On {
        self.choice = Some(choice);
        self
    }

    /// Another value for a scalar.
    pub(super) fn with(mut self, name: &'static str, value: f64) -> On {
        self.scalars.insert(0, (name, value));
        self
    }

    /// Runs the ops on references and handles, in float and double.
    #[track_caller]
    pub(super) fn gives(self, want: &[&[f32]]) {
        for dtype in [DType::Float, DType::Double] {
            for by_ref in [true, false] {
                if by_ref && !self.spec.has_ref {
                    continue;
                }
                for (got, want) in self.run(dtype, by_ref).iter().zip(want) {
                    let want: Vec<f64> = want.iter().map(|&x| f64::from(x)).collect();
                    assert_close(got, &tensor(dtype, &[3, 2], &want), 1e-5, 1e-6);
                }
            }
        }
    }

    fn run(&self, dtype: DType, by_ref: bool) -> Vec<Tensor> {
        let verb = if self.sparse { "SparseApply" } else { "Apply" };
        let prefix = if by_ref { "" } else { "Resource" };
        let slots: Vec<Tensor> = (0..self.spec.slots.len())
            .map(|k| {
                let value = |x: f64| if k == 0 { x } else { x.abs() * 0.1 * k as f64 };
                tensor(dtype, &[3, 2], &VAR.map(value))
            })
            .collect();
        let inputs: Vec<Tensor> = self
            .spec
            .inputs(self.sparse)
            .into_iter()
            .map(|name| match name {
                "grad" | "delta" => tensor(dtype, &[3, 2], &GRAD),
                "indices" => Tensor::vector(&ROWS),
                "global_step" => Tensor::scalar(3i64),
                _ => {
                    let found = self.scalars.iter().find(|(n, _)| *n == name);
                    tensor(dtype, &[], &[found.unwrap_or_else(|| panic!("no {name}")).1])
                }
            })
            .collect();
        let mut case = Case::new(&format!("{prefix}{verb}{}", self.spec.name), &slots);
        case.choice = self.choice.map(|choice| (self.spec.choice.unwrap().0, choice));
        case.after(&inputs)
    }
}

fn tensor(dtype: DType, shape: &[usize], values: &[f64]) -> Tensor {
    match dtype {
        DType::Double => Tensor::from_slice(shape, values).unwrap(),
        _ => {
            let values: Vec<f32> = values.iter().map(|&x| x as f32).collect();
            Tensor::from_slice(shape, &values).unwrap()
        }
    }
}

/// An optimizer's op and the values of its variables.
pub(super) struct Case {
    op: String,
    slots: Vec<Tensor>,
    choice: Option<(&'static str, bool)>,
}

impl Case {
    pub(super) fn new(op: &str, slots: &[Tensor]) -> Case {
        Case { op: op.into(), slots: slots.to_vec(), choice: None }
    }

    fn check(&self, inputs: &[Tensor]) -> (Vec<Held>, crate::testing::Check<'static>) {
        let resources = Arc::new(Resources::new());
        let held: Vec<Held> = self
            .slots
            .iter()
            .enumerate()
            .map(|(k, value)| {
                let held = Held::named(&resources, &format!("slot{k}"), value.clone());
                if self.op.starts_with("Resource") { held } else { held.into_ref() }
            })
            .collect();
        let mut check = held[0].on(&self.op).resources(&resources);
        for slot in &held[1..] {
            check = slot.next(check);
        }
        for input in inputs {
            check = check.input(input.clone());
        }
        if let Some((name, choice)) = self.choice {
            check = check.attr(name, choice);
        }
        (held, check)
    }

    /// The variables' values after a run.
    pub(super) fn after(&self, inputs: &[Tensor]) -> Vec<Tensor> {
        let (held, check) = self.check(inputs);
        check.run_values().unwrap();
        held.iter().map(Held::value).collect()
    }

    #[track_caller]
    pub(super) fn fails(&self, inputs: &[Tensor], text: &str) {
        self.check(inputs).1.fails(Code::InvalidArgument, text);
    }
}
