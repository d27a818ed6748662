//! Lookup tables.

use crate::prelude::*;

mod init;
mod ops;
mod store;

pub use init::check_fixed;
pub use store::Table;

pub(crate) fn register(c: &mut Catalog) {
    init::register(c);
    ops::register(c);
}
