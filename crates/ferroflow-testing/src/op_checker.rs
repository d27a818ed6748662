//! `OpChecker`: a catalog for the op checks of one crate, made when a test first needs it.

use crate::{Check, recorded};
use ferroflow_graph::Catalog;
use std::sync::OnceLock;

/// The ops that the tests of a crate run.
pub struct OpChecker {
    register: &'static [fn(&mut Catalog)],
    catalog: OnceLock<Catalog>,
}

impl OpChecker {
    /// Over the ops that these functions add to a catalog.
    pub const fn new(register: &'static [fn(&mut Catalog)]) -> OpChecker {
        OpChecker { register, catalog: OnceLock::new() }
    }

    pub fn catalog(&self) -> &Catalog {
        self.catalog.get_or_init(|| {
            let mut catalog = Catalog::new();
            self.register.iter().for_each(|register| register(&mut catalog));
            catalog
        })
    }

    /// A check of one op.
    pub fn check(&self, op: &str) -> Check<'_> {
        Check::new(self.catalog(), op)
    }

    /// Runs recorded invocations, one a line, and compares with the recorded answers. Fails with
    /// the first line that differs.
    #[track_caller]
    pub fn check_recorded(&self, text: &str) {
        recorded::check_recorded(self, text);
    }
}
