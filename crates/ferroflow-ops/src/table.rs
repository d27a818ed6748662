//! Lookup tables.

use crate::prelude::*;

mod init;
mod ops;
mod store;

pub(crate) use init::check_fixed;
pub(crate) use store::Table;

pub(crate) fn register(c: &mut Catalog) {
    init::register(c);
    ops::register(c);
}
