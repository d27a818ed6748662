//! The ops that graphs are built from.

use ferroflow_graph::Catalog;
use std::sync::{Arc, LazyLock};

/// All ops Ferroflow has, and the signatures of all others TensorFlow has.
pub fn default_catalog() -> Arc<Catalog> {
    static CATALOG: LazyLock<Arc<Catalog>> = LazyLock::new(|| {
        let mut catalog = Catalog::new();
        ferroflow_ops::register(&mut catalog);
        catalog.add_signatures(ferroflow_graph::tensorflow_ops::tensorflow_signatures());
        Arc::new(catalog)
    });
    CATALOG.clone()
}
