//! Ops on resources that exist in two forms with different kinds of handle.

use crate::prelude::*;
use ferroflow_graph::OpBuilder;

/// The kind of handle that an op takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HandleForm {
    /// The first form of an op: references to two strings, a container and a name.
    Ref,
    /// The later form of an op: resource handles.
    Resource,
}

impl HandleForm {
    pub const BOTH: [HandleForm; 2] = [HandleForm::Ref, HandleForm::Resource];

    /// The first or the second value, by form.
    pub fn pick<T>(self, of_ref: T, of_resource: T) -> T {
        match self {
            HandleForm::Ref => of_ref,
            HandleForm::Resource => of_resource,
        }
    }

    /// `name` with the suffix of its form: `V2` for the later one.
    pub fn versioned(self, name: &str) -> String {
        format!("{name}{}", self.pick("", "V2"))
    }

    /// `name: type` of a handle, in TensorFlow's notation.
    pub fn argument(self, name: &str) -> String {
        format!("{name}: {}", self.pick("Ref(string)", "resource"))
    }

    /// Adds the output of an op that makes a resource: its handle.
    pub fn output<'c>(self, op: OpBuilder<'c>, name: &str) -> OpBuilder<'c> {
        let op = op.output(&self.argument(name)).stateful();
        match self {
            HandleForm::Ref => op.shape(ref_handle_shape),
            HandleForm::Resource => op.shape(shape::scalar),
        }
    }

    /// Adds the first input of an op that uses a resource: its handle. The later form is stateful.
    pub fn input<'c>(self, op: OpBuilder<'c>, name: &str) -> OpBuilder<'c> {
        let op = op.input(&self.argument(name));
        if self == HandleForm::Resource { op.stateful() } else { op }
    }
}

/// The shape of a handle that is a reference: two strings.
pub fn ref_handle_shape(_: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::from([2])])
}
