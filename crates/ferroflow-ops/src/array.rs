//! Family array.

use crate::prelude::*;

pub(crate) fn register(_c: &mut Catalog) {}
