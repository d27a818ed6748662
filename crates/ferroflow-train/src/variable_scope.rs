//! Variable scopes: parts of a program share variables by name.

use crate::graph::{Graph, Restore};
use crate::init::{Initializer, IntoInitializer};
use crate::names::join;
use crate::variable::{SliceInfo, Variable, VariableOptions};
use ferroflow_core::{Result, bail, ensure};

/// Whether `get_variable` makes variables or reuses them.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{Reuse, layers::Dense};
/// let x = g.placeholder::<f32>("x", [None, Some(4)]);
/// let tower = || Dense::new("dense", 2).apply(&x);
/// g.variable_scope("model", Reuse::No, tower);
/// g.variable_scope("model", Reuse::Yes, tower); // the same kernel and bias
/// assert_eq!(g.trainable_variables().len(), 2);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reuse {
    /// Makes variables. An existing name is an error.
    #[default]
    No,
    /// Reuses variables. A missing name is an error.
    Yes,
    /// Reuses existing variables and makes the others.
    Auto,
}

/// The current variable scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct VariableScope {
    pub name: String,
    pub reuse: Reuse,
}

impl Graph {
    /// Runs `build` in a variable scope and a name scope. [`Graph::get_variable`] names variables
    /// `name/…`. `reuse` says whether a reopened scope reuses its variables; scopes inside a scope
    /// that reuses do too.
    ///
    /// ```
    /// # let g = ferroflow_train::Graph::new();
    /// use ferroflow_train::{Reuse, init};
    /// let get = || g.get_variable("w", init::zeros([2]));
    /// let a = g.variable_scope("layer", Reuse::No, get);
    /// let b = g.variable_scope("layer", Reuse::Yes, get);
    /// assert_eq!(a.variable_name(), "layer/w");
    /// assert_eq!(a.name(), b.name());
    /// ```
    pub fn variable_scope<R>(&self, name: &str, reuse: Reuse, build: impl FnOnce() -> R) -> R {
        let before = {
            let mut state = self.state();
            let before = state.variable_scope.clone();
            let reuse = if reuse == Reuse::No { before.reuse } else { reuse };
            state.variable_scope = VariableScope { name: join(&before.name, name), reuse };
            before
        };
        let graph = self.clone();
        let _restore = Restore(move || graph.state().variable_scope = before.clone());
        self.name_scope(name, |_| build())
    }

    /// The variable `name` of the current variable scope, new or reused.
    #[track_caller]
    pub fn get_variable(&self, name: &str, initial: impl IntoInitializer) -> Variable {
        self.get_variable_with(name, initial, VariableOptions::default())
    }

    /// [`Graph::get_variable`] with options for a new variable.
    #[track_caller]
    pub fn get_variable_with(
        &self,
        name: &str,
        initial: impl IntoInitializer,
        options: VariableOptions,
    ) -> Variable {
        let initial = self.or_fail(initial.into_initializer()).unwrap_or_default();
        let full = join(&self.state().variable_scope.name, name);
        self.get_exactly(&full, initial, options, None)
    }

    /// The variable with this full name, new or reused as the current variable scope says.
    #[track_caller]
    pub(crate) fn get_exactly(
        &self,
        full: &str,
        initial: Initializer,
        options: VariableOptions,
        slice: Option<SliceInfo>,
    ) -> Variable {
        let reuse = self.state().variable_scope.reuse;
        let found = self.find_variable(full);
        let usable = match (&found, reuse) {
            (Ok(_), Reuse::No) => {
                self.fail(ferroflow_core::err!(
                    InvalidArgument,
                    "variable {full} already exists; did you mean to reuse it?"
                ));
                return self.make_variable(full, initial, options, slice);
            }
            (Ok(v), _) => check_same(v, &initial).map(|()| true),
            (Err(_), Reuse::Yes) => Err(ferroflow_core::err!(
                InvalidArgument,
                "variable {full} does not exist, or was not made with get_variable"
            )),
            (Err(_), _) => Ok(false),
        };
        match (usable, found) {
            (Ok(true), Ok(variable)) => variable,
            (Err(e), Ok(variable)) => {
                self.fail(e);
                variable
            }
            (usable, _) => {
                self.or_fail(usable);
                self.state().names.take(full);
                self.make_variable(full, initial, options, slice)
            }
        }
    }
}

fn check_same(found: &Variable, asked: &Initializer) -> Result<()> {
    if !found.info.shape.admits(&asked.shape) {
        bail!(
            InvalidArgument,
            "trying to share variable {}, but specified shape {} and found shape {}",
            found.info.name,
            asked.shape,
            found.info.shape
        );
    }
    ensure!(
        found.info.dtype == asked.dtype,
        InvalidArgument,
        "trying to share variable {}, but specified type {} and found type {}",
        found.info.name,
        asked.dtype,
        found.info.dtype
    );
    Ok(())
}
