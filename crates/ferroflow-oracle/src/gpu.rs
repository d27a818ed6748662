//! Ops on a GPU beside TensorFlow's answers, and beside the CPU's.

use crate::answer::FerroflowTask;
use crate::compare::differences;
use crate::record::{ComparisonMode, RecordedAnswer, RecordedCase};
use ferroflow::graph::default_catalog;
use ferroflow_core::{DType, Gpu, Tensor, bf16, f16};
use ferroflow_graph::Catalog;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The results of one op and dtype on a GPU.
#[derive(Default)]
pub struct DeviceResult {
    /// Calls that ran on the GPU.
    pub cases: usize,
    /// The largest relative error beside the CPU kernel, as a norm.
    pub worst: f64,
    /// Calls that failed or whose values differ from TensorFlow's.
    pub failures: Vec<String>,
}

/// Runs cases on a GPU.
pub struct DeviceCheck {
    catalog: Arc<Catalog>,
    on_gpu: FerroflowTask,
    on_cpu: FerroflowTask,
    /// By op and dtype.
    pub results: BTreeMap<(String, String), DeviceResult>,
}

impl DeviceCheck {
    /// A check on `gpu`.
    pub fn new(gpu: Arc<dyn Gpu>) -> DeviceCheck {
        DeviceCheck {
            catalog: default_catalog(),
            on_gpu: FerroflowTask::with_gpus(&[gpu]),
            on_cpu: FerroflowTask::default(),
            results: BTreeMap::new(),
        }
    }

    /// Runs a case, unless its op does not run on GPUs or the call is invalid.
    pub fn add(&mut self, case: &RecordedCase) {
        let has_kernel = self.catalog.get(&case.op).is_some_and(|op| op.gpu.is_some());
        let is_valid = !case.spoiled && matches!(case.theirs, RecordedAnswer::Values(_));
        if !has_kernel || !is_valid || case.mode == ComparisonMode::Shape {
            return;
        }
        let (ours, was_there) = match self.on_gpu.answer_traced(case) {
            Ok((values, devices)) => {
                (Ok(values), devices.iter().any(|(op, d)| *op == case.op && d.contains("GPU")))
            }
            Err(e) => (Err(e), true),
        };
        if !was_there {
            return;
        }
        let result = self.results.entry((case.op.clone(), case.dtype.clone())).or_default();
        result.cases += 1;
        for difference in differences(case, &ours) {
            // What the CPU explains differently than TensorFlow is no failure of the GPU.
            let theirs = differences(case, &self.on_cpu.answer(case));
            if theirs.iter().all(|d| d.kind != difference.kind) {
                result.failures.push(format!("#{}: {}", case.index, difference.text));
            }
        }
        if let (Ok(got), Ok(want)) = (ours, self.on_cpu.answer(case)) {
            for (got, want) in got.iter().zip(&want) {
                result.worst = result.worst.max(relative_error(got, want));
            }
        }
    }

    /// A line of JSON for each op and dtype.
    pub fn lines(&self) -> Vec<Json> {
        let line = |((op, dtype), result): (&(String, String), &DeviceResult)| {
            json!({"op": op, "dtype": dtype, "cases": result.cases, "worst": result.worst,
                "ok": result.failures.is_empty(), "failures": result.failures.iter().take(3).collect::<Vec<_>>()})
        };
        self.results.iter().map(line).collect()
    }
}

/// `|got - want| / |want|` over all finite elements; 0 for tensors without numbers.
fn relative_error(got: &Tensor, want: &Tensor) -> f64 {
    let (Some(got), Some(want)) = (numbers(got), numbers(want)) else { return 0.0 };
    let (mut error, mut norm) = (0.0, 0.0);
    for (x, y) in got.iter().zip(&want).filter(|(x, y)| x.is_finite() && y.is_finite()) {
        error += (x - y) * (x - y);
        norm += y * y;
    }
    if norm == 0.0 { error.sqrt() } else { (error / norm).sqrt() }
}

fn numbers(t: &Tensor) -> Option<Vec<f64>> {
    Some(match t.dtype() {
        DType::Float => t.as_slice::<f32>().ok()?.iter().map(|&x| x.into()).collect(),
        DType::Double => t.as_slice::<f64>().ok()?.to_vec(),
        DType::Half => t.as_slice::<f16>().ok()?.iter().map(|x| x.to_f64()).collect(),
        DType::BFloat16 => t.as_slice::<bf16>().ok()?.iter().map(|x| x.to_f64()).collect(),
        _ => return None,
    })
}

/// The ops that have a GPU kernel of their own, and those whose CPU kernel works in either memory.
pub fn covered() -> (usize, usize) {
    let catalog = default_catalog();
    let own = |make: bool| {
        let of = |op: &&Arc<ferroflow_graph::OpDef>| {
            op.gpu.as_ref().is_some_and(|gpu| gpu.make.is_some() == make)
        };
        catalog.iter().filter(of).count()
    };
    (own(true), own(false))
}
