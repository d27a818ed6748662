//! Variables, and the ops that change them.

use crate::prelude::*;

pub(crate) mod anchor;

pub(crate) fn register(_c: &mut Catalog) {}
