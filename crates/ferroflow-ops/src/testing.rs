//! `check("Relu")`: the op checker over this crate's own catalog.

use ferroflow_graph::Catalog;
pub use ferroflow_testing::Check;
use std::sync::LazyLock;

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
    let mut c = Catalog::new();
    crate::register(&mut c);
    c
});

/// A check of one op of this crate.
pub fn check(op: &str) -> Check<'static> {
    Check::new(&CATALOG, op)
}

mod recorded;
pub use recorded::check_recorded;
