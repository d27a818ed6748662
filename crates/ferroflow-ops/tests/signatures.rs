//! Every op is declared as TensorFlow declares it.

use ferroflow_graph::Catalog;
use ferroflow_graph::tensorflow_ops::signature_differences;

#[test]
fn signatures_are_tensorflows() {
    let mut catalog = Catalog::new();
    ferroflow_ops::register(&mut catalog);
    let differences: Vec<String> = catalog
        .iter()
        .flat_map(|op| signature_differences(op).into_iter().map(|d| format!("{}: {d}", op.name)))
        .collect();
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn every_op_is_described_and_infers_shapes() {
    let mut catalog = Catalog::new();
    ferroflow_ops::register(&mut catalog);
    for op in catalog.iter() {
        assert!(!op.doc.is_empty(), "{} has no doc", op.name);
        assert!(op.shape.is_some(), "{} has no shape function", op.name);
        assert!(op.cpu.is_some(), "{} has no kernel", op.name);
    }
}
