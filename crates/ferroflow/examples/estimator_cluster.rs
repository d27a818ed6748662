//! An estimator, alone or on a cluster: the same program. Every task of a cluster runs it, and
//! TF_CONFIG says which task it is: `ps`, `chief`, `worker` or `evaluator`. Without TF_CONFIG it
//! trains and evaluates in one process.
//!
//!     cargo run --release --example estimator_cluster -- out
//!     ferroflow run --ps 1 --workers 2 --chief --evaluator -- \
//!         target/release/examples/estimator_cluster out

use ferroflow::prelude::*;
use ferroflow::train::estimator::{
    ArrayInput, DnnLinearCombinedRegressor, EvalSpec, RunConfig, TrainSpec, train_and_evaluate,
};
use ferroflow::train::feature_column::{identity, numeric};

const STEPS: i64 = 600;

/// A number for each of four ids, plus a curve.
fn examples() -> Result<ArrayInput> {
    let ids: Vec<i64> = (0..64).map(|i| i % 4).collect();
    let xs: Vec<f32> = (0..64).map(|i| i as f32 / 32.0 - 1.0).collect();
    let ys: Vec<f32> = ids.iter().zip(&xs).map(|(id, x)| *id as f32 + 2.0 * x * x).collect();
    let features = [("id", ids.into_tensor()?), ("x", xs.into_tensor()?)];
    Ok(ArrayInput::new(&features).labels(ys.into_tensor()?).batch(32))
}

pub fn main() -> Result<()> {
    let dir = std::env::args().nth(1).unwrap_or_default();
    let is_temporary = dir.is_empty() && std::env::var_os("TF_CONFIG").is_none();
    let dir = match is_temporary {
        true => std::env::temp_dir().join(format!("ferroflow-estimator-{}", std::process::id())),
        false => dir.into(),
    };
    let data = examples()?;
    let endless = data.clone().epochs(None).shuffled();
    let train = TrainSpec::new(move |g| endless.batches(g), STEPS);
    let eval = EvalSpec::new(move |g| data.batches(g));
    let (wide, deep) = (vec![identity("id", 4).into()], vec![numeric("x").into()]);
    let model = DnnLinearCombinedRegressor::new(wide, deep, &[16])
        .optimizers(Ftrl::new(0.5), Adagrad::new(0.1));
    let config = RunConfig::new(&dir).seed(1).save_steps(100);
    if let Some(scores) = train_and_evaluate(model, config, &train, &eval)? {
        println!("loss {:.4} after step {}", scores["loss"], scores["global_step"]);
        assert!(scores["loss"] < 0.2 && scores["global_step"] >= STEPS as f64);
    }
    if is_temporary {
        let _ = std::fs::remove_dir_all(&dir);
    }
    Ok(())
}
