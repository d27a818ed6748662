//! Writes files that TensorFlow reads: a checkpoint, a MetaGraph, a GraphDef, a SavedModel and
//! TensorBoard events. Trains on a server if one is given, TensorFlow's or Ferroflow's.
//!
//!     cargo run --release --example tf_interop -- [grpc://host:port] [DIR]

use ferroflow::prelude::*;
use ferroflow::train::estimator::{
    Batch, DnnClassifier, Estimator, RunConfig, ServingInput, Until,
};
use ferroflow::train::feature_column::{
    Column, bucketized, crossed, embedding, hashed, indicator, numeric, parse_spec, vocabulary,
};
use std::path::Path;

pub fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let target = arguments.iter().find(|a| a.starts_with("grpc://"));
    match arguments.iter().find(|a| !a.starts_with("grpc://")) {
        Some(dir) => run(target.map(String::as_str), Path::new(dir)),
        None => {
            let name = format!("ferroflow-interop-{}", std::process::id());
            let dir = std::env::temp_dir().join(name);
            let result = run(target.map(String::as_str), &dir);
            let _ = std::fs::remove_dir_all(&dir);
            result
        }
    }
}

/// Trains, and writes all files to `dir`.
pub fn run(target: Option<&str>, dir: &Path) -> Result<()> {
    let g = Graph::new();
    let x = g.placeholder::<f32>("x", [None]);
    let y = g.placeholder::<f32>("y", [None]);
    let (w, b) = (g.variable("w", 0.0), g.variable("b", 0.0));
    let prediction = &x * &w + &b;
    let loss = losses::mean_squared_error(&y, &prediction);
    let train = Sgd::new(0.1).minimize(&loss);
    summary::scalar("loss", &loss);
    let summaries = summary::merge_all(&g).unwrap_or_else(|| g.constant(""));
    let init = g.global_initializer();
    let saver = Saver::new(&g);
    let signature = Signature::predict().input("x", &x).output("y", &prediction);
    let model = SavedModelBuilder::new(&g).signature("serving_default", signature);

    let session = match target {
        Some(target) => Session::connect(target, &g)?,
        None => Session::local(&g)?,
    };
    session.run(&init)?;
    let mut events = EventWriter::create(dir)?;
    events.graph(&g)?;
    let xs: Vec<f32> = (0..100).map(|i| i as f32 / 50.0 - 1.0).collect();
    let ys: Vec<f32> = xs.iter().map(|x| 2.0 * x + 10.0).collect();
    for step in 1..=200 {
        let feeds = [(&x, xs.clone()), (&y, ys.clone())];
        let (summary, ()) = session.run_fed(feeds, (&summaries, &train))?;
        events.summary(&summary, step)?;
    }
    events.flush()?;

    let checkpoint = saver.save(&session, dir.join("model.ckpt"), Some(200))?;
    let exported = dir.join("saved_model");
    model.save(&session, &exported)?;
    let graph_file = dir.join("graph.pb");
    std::fs::write(&graph_file, g.to_graph_def_bytes()?)
        .map_err(|e| Error::new(Code::Internal, format!("{}: {e}", graph_file.display())))?;
    println!("tf.train.load_checkpoint({checkpoint:?}).get_tensor(\"w\")");
    println!("tf.compat.v1.train.import_meta_graph(\"{checkpoint}.meta\")");
    println!("tf.saved_model.load({:?}).signatures[\"serving_default\"]", exported.display());
    println!("tensorboard --logdir {}", dir.display());
    session.close()?;
    export_estimator(dir)
}

/// A model with lookup tables, hashes and crosses, and its predictions for some serialized
/// examples, to compare with TensorFlow's.
fn export_estimator(dir: &Path) -> Result<()> {
    let words = ["up", "down", "left", "sideways"];
    let examples: Vec<Example> = (0..8)
        .map(|i| {
            let word = words[i % words.len()];
            Example::new().texts("word", &[word]).floats("n", &[i as f32 - 3.5])
        })
        .collect();
    let records = examples.iter().map(|e| e.encode().into()).collect();
    let records = Tensor::from_strings([examples.len()], records)?;
    let word = || vocabulary("word", &["up", "down", "left"]).oov_buckets(2);
    let sign = bucketized(&numeric("n"), &[0.0]);
    let columns = vec![
        numeric("n").into(),
        indicator(&word()),
        embedding(&hashed("word", 10), 3).into(),
        indicator(&crossed(&[word().into(), sign.into()], 20)),
    ];
    let spec = parse_spec(&columns.iter().cloned().map(Column::Dense).collect::<Vec<_>>());
    let model = DnnClassifier::new(columns, &[8], 3);
    let estimator = Estimator::new(model, RunConfig::new(dir.join("estimator")).seed(1));
    let parsed = |g: &Graph| {
        let data = g.dataset(&[g.constant(&records)]).repeat(None).batch(8);
        let next = data.iterator();
        g.add_operation_to_collection(keys::TABLE_INITIALIZERS, &next.initializer);
        let features = feature_column::parse_examples(&next.next()[0], &spec);
        Batch::new(features).with_labels(&g.constant([0i64, 1, 2, 0, 1, 2, 0, 1]))
    };
    estimator.train(parsed, Until::Steps(20))?;
    let mut told = String::new();
    for (example, said) in examples.iter().zip(estimator.predict(parsed)?) {
        let said = said?;
        let hex: String = example.encode().iter().map(|b| format!("{b:02x}")).collect();
        told += &format!("{hex} {:?}\n", said["probabilities"].as_slice::<f32>()?);
    }
    let exported = estimator.export(dir.join("export"), |g| ServingInput::examples(g, &spec))?;
    std::fs::write(exported.join("expected.txt"), told)
        .map_err(|e| Error::new(Code::Internal, format!("{}: {e}", exported.display())))
}
