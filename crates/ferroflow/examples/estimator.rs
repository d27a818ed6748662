//! An estimator: trains a canned model over feature columns, evaluates it, predicts, and exports a
//! SavedModel. `estimator_cluster` does the same on a cluster.
//!
//!     cargo run --release --example estimator

use ferroflow::prelude::*;
use ferroflow::train::estimator::{
    ArrayInput, DnnClassifier, Estimator, RunConfig, ServingInput, Until,
};
use ferroflow::train::feature_column::{embedding, indicator, numeric, parse_spec, vocabulary};

/// Flats, and whether each is expensive: near the centre, or in the old town.
fn flats() -> Result<ArrayInput> {
    let towns = ["old", "new", "port", "mill"];
    let (mut distance, mut town, mut dear) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..200 {
        let km = (i * 37 % 100) as f32 / 10.0;
        let which = towns[i * 13 % 4];
        distance.push(km);
        town.push(which.to_string());
        dear.push(i64::from(km < 3.0 || which == "old"));
    }
    let features = [("distance", distance.into_tensor()?), ("town", town.into_tensor()?)];
    Ok(ArrayInput::new(&features).labels(dear.into_tensor()?).batch(32))
}

pub fn main() -> Result<()> {
    let dir = std::env::temp_dir().join(format!("ferroflow-estimator-{}", std::process::id()));
    let town = vocabulary("town", &["old", "new", "port", "mill"]);
    let distance = numeric("distance").normalizer(|km| km * 0.1);
    let columns = vec![distance.clone().into(), indicator(&town), embedding(&town, 2).into()];
    let model = DnnClassifier::new(columns, &[16, 8], 2);
    let estimator = Estimator::new(model, RunConfig::new(&dir).seed(1));

    let data = flats()?;
    let endless = data.clone().epochs(None).shuffled();
    let step = estimator.train(|g| endless.batches(g), Until::Steps(400))?;
    let scores = estimator.evaluate(|g| data.batches(g), None)?;
    println!("step {step}: accuracy {:.3}, auc {:.3}", scores["accuracy"], scores["auc"]);
    assert!(scores["accuracy"] > 0.9);

    let first = estimator.predict(|g| data.batches(g))?.next();
    let first = first.ok_or_else(|| Error::new(Code::OutOfRange, "no example"))??;
    println!("the first flat: {:?}", first["probabilities"]);

    // TensorFlow Serving, or `tf.saved_model.load`, takes serialized examples.
    let spec = parse_spec(&[distance.into(), town.into()]);
    let exported = estimator.export(dir.join("export"), |g| ServingInput::examples(g, &spec))?;
    println!("exported to {}", exported.display());
    let _ = std::fs::remove_dir_all(&dir);
    Ok(())
}
