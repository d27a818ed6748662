//! Variables for the tests of this family, held by reference or by handle.

use crate::prelude::*;
use crate::testing::{Check, check};

/// A variable with a value, and the way in which ops access it.
pub(crate) struct Held {
    resources: Arc<Resources>,
    variable: Arc<StoredVariable>,
    handle: Option<Tensor>,
}

impl Held {
    pub(crate) fn by_ref(value: Tensor) -> Held {
        Held::by_handle(value).into_ref()
    }

    pub(crate) fn into_ref(self) -> Held {
        Held { handle: None, ..self }
    }

    pub(crate) fn by_handle(value: Tensor) -> Held {
        Held::named(&Arc::new(Resources::new()), "v", value)
    }

    /// A variable among others.
    pub(crate) fn named(resources: &Arc<Resources>, name: &str, value: Tensor) -> Held {
        let variable = resources
            .lookup_or_create("c", name, || {
                Ok(StoredVariable::new(name, value.dtype(), value.shape().into()))
            })
            .unwrap();
        variable.assign(value);
        let handle =
            ResourceHandle { container: "c".into(), name: name.into(), ..Default::default() };
        Held { resources: resources.clone(), variable, handle: Some(Tensor::handle(handle)) }
    }

    pub(crate) fn both(value: Tensor) -> [Held; 2] {
        [Held::by_ref(value.deep_copy().unwrap()), Held::by_handle(value.deep_copy().unwrap())]
    }

    /// One of two texts: for references, and for handles.
    pub(crate) fn op<'a>(&self, by_ref: &'a str, by_handle: &'a str) -> &'a str {
        if self.handle.is_some() { by_handle } else { by_ref }
    }

    /// A check of `op` whose first input is this variable.
    pub(crate) fn on(&self, op: &str) -> Check<'static> {
        self.next(check(op).resources(&self.resources))
    }

    /// The check with this variable as its next input.
    pub(crate) fn next(&self, check: Check<'static>) -> Check<'static> {
        match &self.handle {
            Some(handle) => check.input(handle.clone()),
            None => check.ref_input(self.variable.clone()),
        }
    }

    pub(crate) fn value(&self) -> Tensor {
        self.variable.read().unwrap()
    }
}
