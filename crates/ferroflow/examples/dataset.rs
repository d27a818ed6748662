//! An input pipeline: the graph itself reads, parses, shuffles and batches files of records.
//!
//!     cargo run --release --example dataset

use ferroflow::prelude::*;
use ferroflow::train::feature_column::{FeatureSpec, parse_examples};
use std::collections::BTreeMap;

pub fn main() -> Result<()> {
    let dir = std::env::temp_dir().join(format!("ferroflow-dataset-{}", std::process::id()));
    std::fs::create_dir_all(&dir).map_err(|e| Error::new(Code::Internal, e.to_string()))?;
    // Two TFRecord files of examples, as TensorFlow writes and reads them.
    for part in 0..2 {
        let mut file = RecordWriter::create(dir.join(format!("part-{part}.tfrecord")))?;
        for i in 0..50 {
            let x = (part * 50 + i) as f32 / 50.0 - 1.0;
            let example = Example::new().floats("x", &[x]).floats("y", &[2.0 * x + 10.0]);
            file.write(&example.encode())?;
        }
        file.finish()?;
    }

    // Finds the files and interleaves them, shuffles, batches and parses the records, and
    // prefetches the next batch.
    let g = Graph::new();
    g.set_seed(1);
    let pattern = dir.join("*.tfrecord").display().to_string();
    let one = FeatureSpec::Fixed { dtype: DType::Float, width: 1, default: None };
    let spec = BTreeMap::from([("x".to_string(), one.clone()), ("y".to_string(), one)]);
    let batches = g
        .files_dataset(&[&pattern])
        .interleave(2, 1, |g, file| g.tf_record_dataset_of(&file[0]))
        .shuffle(100, None)
        .repeat(None)
        .batch_exact(20)
        .parallel_map(2, |g, records| {
            let features = parse_examples(&records[0], &spec);
            let tensor = |name| features.tensor(name).cloned().unwrap_or_else(|_| g.constant(0.0));
            vec![tensor("x"), tensor("y")]
        })
        .prefetch(2);
    let iterator = batches.iterator();
    let next = iterator.next();
    let (x, y) = (&next[0], &next[1]);

    let (w, b) = (g.variable("w", 0.0), g.variable("b", 0.0));
    let loss = losses::mean_squared_error(y, &(x * &w + &b));
    let train = Sgd::new(0.2).minimize(&loss);
    let init = g.global_initializer();
    let session = Session::local(&g)?;
    session.run((&init, &iterator.initializer))?;
    for _ in 0..200 {
        session.run(&train)?;
    }
    let (w, b) = session.run((w.scalar::<f32>(), b.scalar::<f32>()))?;
    println!("w {w:.3}  b {b:.3}");
    assert!((w - 2.0).abs() < 0.01 && (b - 10.0).abs() < 0.01);
    let _ = std::fs::remove_dir_all(&dir);
    session.close()
}
