//! The catalog: the ops a session knows, and how they are declared.

use crate::op_def::{
    ArgDef, AttrDef, CallKind, ControlFlow, FlopsFn, MakeBlockKernel, OpCost, OpDef, OpRole,
};
use crate::{GradientScope, KernelInit, OpGradient, ShapeCtx, Term, signature};
use ferroflow_core::{KernelBox, PartialShape, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Ops by name. A value handed to a session, not a global registry: a test makes one with three
/// ops in it.
#[derive(Clone, Default)]
pub struct Catalog {
    ops: BTreeMap<String, Arc<OpDef>>,
}

impl Catalog {
    pub fn new() -> Catalog {
        Catalog::default()
    }

    /// Declares an op; the declaration is complete when the builder is dropped.
    ///
    /// A declaration that does not parse, or a name declared twice, is a bug in this program and
    /// panics: the catalog is made at start, and by every test.
    #[track_caller]
    pub fn op<'c>(&'c mut self, name: &str) -> OpBuilder<'c> {
        let source = std::panic::Location::caller().file();
        OpBuilder { catalog: self, def: OpDef { source, ..OpDef::named(name) } }
    }

    /// Declares the gradient of an op that was declared by a table; see [`OpBuilder::gradient`].
    pub fn gradient(
        &mut self,
        op: &str,
        make: impl for<'g> Fn(&GradientScope<'g>, &[Term<'g>]) -> Result<Vec<Term<'g>>>
        + Send
        + Sync
        + 'static,
    ) {
        self.set_gradient(op, OpGradient::Function(Arc::new(make)));
    }

    /// Declares that gradients stop at these ops; see [`OpBuilder::no_gradient`].
    pub fn no_gradient(&mut self, ops: &[&str]) {
        for op in ops {
            self.set_gradient(op, OpGradient::Stops);
        }
    }

    fn set_gradient(&mut self, op: &str, gradient: OpGradient) {
        let def = self.ops.get_mut(op).unwrap_or_else(|| panic!("op {op:?} is not declared"));
        let before = Arc::make_mut(def).gradient.replace(gradient);
        assert!(before.is_none(), "the gradient of {op:?} is declared twice");
    }

    /// Adds ops from a list of signatures alone (no kernels), where they are not declared yet.
    pub fn add_signatures(&mut self, defs: impl IntoIterator<Item = OpDef>) {
        for def in defs {
            self.ops.entry(def.name.clone()).or_insert_with(|| Arc::new(def));
        }
    }

    pub fn get(&self, name: &str) -> Option<&Arc<OpDef>> {
        self.ops.get(name)
    }

    /// The ops of this catalog that `keep` says.
    pub fn filtered(&self, keep: impl Fn(&OpDef) -> bool) -> Catalog {
        let kept = self.ops.iter().filter(|(_, op)| keep(op));
        Catalog { ops: kept.map(|(name, op)| (name.clone(), op.clone())).collect() }
    }

    /// All ops, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<OpDef>> {
        self.ops.values()
    }
}

/// A declaration in progress.
pub struct OpBuilder<'c> {
    catalog: &'c mut Catalog,
    def: OpDef,
}

impl OpBuilder<'_> {
    pub fn doc(mut self, text: &str) -> Self {
        self.def.doc = text.to_string();
        self
    }

    /// `name: type`, in TensorFlow's notation.
    pub fn input(mut self, text: &str) -> Self {
        self.def.inputs.push(parsed::<ArgDef>(signature::parse_arg(text), text));
        self
    }

    pub fn output(mut self, text: &str) -> Self {
        self.def.outputs.push(parsed::<ArgDef>(signature::parse_arg(text), text));
        self
    }

    /// `name: type = default`, in TensorFlow's notation.
    pub fn attr(mut self, text: &str) -> Self {
        self.def.attrs.push(parsed::<AttrDef>(signature::parse_attr(text), text));
        self
    }

    /// Gives the attribute declared last a default that the notation has no way to write.
    pub fn default(mut self, value: impl Into<crate::AttrValue>) -> Self {
        let last = self.def.attrs.last_mut().expect("an attribute was declared");
        last.default = Some(value.into());
        self
    }

    pub fn stateful(mut self) -> Self {
        self.def.is_stateful = true;
        self
    }

    pub fn commutative(mut self) -> Self {
        self.def.is_commutative = true;
        self
    }

    pub fn aggregate(mut self) -> Self {
        self.def.is_aggregate = true;
        self
    }

    pub fn allows_uninitialized_input(mut self) -> Self {
        self.def.allows_uninitialized_input = true;
        self
    }

    pub fn control_flow(mut self, which: ControlFlow) -> Self {
        self.def.control_flow = Some(which);
        self
    }

    pub fn role(mut self, role: OpRole) -> Self {
        self.def.role = role;
        self
    }

    /// A run is worth a thread of its own when others are ready too.
    pub fn expensive(mut self) -> Self {
        self.def.cost = OpCost::Expensive;
        self
    }

    /// About how many floating-point operations a node takes, for placement.
    pub fn flops(mut self, of: FlopsFn) -> Self {
        self.def.flops = Some(of);
        self
    }

    /// It is element-wise and may be fused with others of its kind; see [`crate::AnyBlockKernel`].
    pub fn blocks(mut self, of: MakeBlockKernel) -> Self {
        self.def.blocks = Some(of);
        self
    }

    /// A bias and an activation that follow may be run as a part of it.
    pub fn takes_epilogue(mut self) -> Self {
        self.def.takes_epilogue = true;
        self
    }

    /// It need not be where the resources are that it is given.
    pub fn takes_resources_from_anywhere(mut self) -> Self {
        self.def.takes_resources_from_anywhere = true;
        self
    }

    /// It looks at what is known of a tensor without its elements.
    pub fn metadata(mut self) -> Self {
        self.def.is_metadata = true;
        self
    }

    /// Its kernel is asynchronous: it may wait for more than its inputs.
    pub fn waits(mut self) -> Self {
        self.def.may_wait = true;
        self
    }

    /// It calls functions, which are placed on their own, and what they wait for it waits for.
    pub fn calls(mut self, how: CallKind) -> Self {
        self.def.calls = Some(how);
        self.takes_resources_from_anywhere().waits()
    }

    /// What can be said of the outputs' shapes before the step.
    pub fn shape(
        mut self,
        infer: impl Fn(&ShapeCtx<'_>) -> Result<Vec<PartialShape>> + Send + Sync + 'static,
    ) -> Self {
        self.def.shape = Some(Arc::new(infer));
        self
    }

    /// How its gradient is made: nodes that compute the gradients of the inputs from those of the
    /// outputs; see [`crate::GradientScope`].
    pub fn gradient(
        mut self,
        make: impl for<'g> Fn(&GradientScope<'g>, &[Term<'g>]) -> Result<Vec<Term<'g>>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.def.gradient = Some(OpGradient::Function(Arc::new(make)));
        self
    }

    /// Its outputs do not change with its inputs, as far as gradients go: they stop here silently.
    pub fn no_gradient(mut self) -> Self {
        self.def.gradient = Some(OpGradient::Stops);
        self
    }

    /// How its CPU kernel is made; runs once per node, never in a step.
    pub fn cpu(
        mut self,
        make: impl Fn(&KernelInit<'_>) -> Result<KernelBox> + Send + Sync + 'static,
    ) -> Self {
        self.def.cpu = Some(Arc::new(make));
        self
    }

    /// A CPU kernel that needs nothing from the node: a plain function.
    pub fn cpu_fn(self, kernel: fn(&mut ferroflow_core::Ctx<'_>) -> Result<()>) -> Self {
        self.cpu(move |_| Ok(KernelBox::new(kernel)))
    }
}

impl Drop for OpBuilder<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let mut def = std::mem::replace(&mut self.def, OpDef::named(""));
        signature::resolve_lists(&mut def.inputs, &def.attrs);
        signature::resolve_lists(&mut def.outputs, &def.attrs);
        let name = def.name.clone();
        let before = self.catalog.ops.insert(name.clone(), Arc::new(def));
        assert!(before.is_none(), "op {name:?} is declared twice");
    }
}

fn parsed<T>(result: Result<T>, text: &str) -> T {
    result.unwrap_or_else(|e| panic!("cannot declare {text:?}: {}", e.message()))
}
