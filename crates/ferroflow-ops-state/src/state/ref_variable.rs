//! Variables that graphs hold by reference: VariableV2 and similar ops.

use crate::prelude::*;
use ferroflow_graph::ResourceName;
use ferroflow_op_kit::handle::Target;
use parking_lot::Mutex;
use std::sync::Weak;

/// A variable made by VariableV2. A resource handle of the same name has another variable.
struct RefVariable(Arc<StoredVariable>);

impl Resource for RefVariable {
    fn describe(&self) -> String {
        self.0.describe()
    }
}

struct MakeVariable {
    name: ResourceName,
    dtype: DType,
    shape: PartialShape,
    /// The variable of the last step, and the state of the session's resources then.
    last: Mutex<Option<(Weak<Resources>, u64, Weak<StoredVariable>)>>,
}

fn make_variable(init: &KernelInit<'_>) -> Result<KernelBox> {
    Ok(KernelBox::new(MakeVariable {
        name: init.resource_name(true)?,
        dtype: init.dtype("dtype")?,
        shape: init.shape("shape")?,
        last: Mutex::new(None),
    }))
}

impl Kernel for MakeVariable {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let resources = &ctx.step().resources;
        let mut last = self.last.lock();
        if let Some((from, removals, variable)) = &*last
            && std::ptr::eq(from.as_ptr(), Arc::as_ptr(resources))
            && *removals == resources.removals()
            && let Some(variable) = variable.upgrade()
        {
            drop(last);
            return ctx.set_ref(0, variable);
        }
        let removals = resources.removals();
        let ResourceName { container, name, .. } = &self.name;
        let found = resources.lookup_or_create(container, name, || {
            let variable = StoredVariable::new(name.clone(), self.dtype, self.shape.clone());
            // Without elements there is nothing to initialise.
            if let Some(shape) = self.shape.known().filter(|s| s.elements() == 0) {
                variable.assign(Tensor::alloc(self.dtype, shape)?);
            }
            Ok(RefVariable(Arc::new(variable)))
        })?;
        let variable = found.0.clone();
        ensure!(
            variable.dtype() == self.dtype,
            InvalidArgument,
            "Variable {name} exists with type {}, not {}",
            variable.dtype(),
            self.dtype
        );
        *last = Some((Arc::downgrade(resources), removals, Arc::downgrade(&variable)));
        drop(last);
        ctx.set_ref(0, variable)
    }
}

/// A variable that ends with the step, or earlier.
struct Temporary(Arc<StoredVariable>);

impl Resource for Temporary {
    fn describe(&self) -> String {
        format!("temporary {}", self.0.describe())
    }
}

/// Where temporary variables are kept among the step's resources.
const TEMPORARIES: &str = "temporary_variables";

/// Every iteration of a loop has its own variables.
fn temporary_name(name: &str, ctx: &Ctx<'_>) -> String {
    let (frame, iteration) = ctx.frame_iter();
    format!("{name}/frame:{frame}/iter:{iteration}")
}

fn temporary(init: &KernelInit<'_>) -> Result<KernelBox> {
    let name = match init.string("var_name")? {
        name if name.is_empty() => init.name().to_string(),
        name => name,
    };
    let (dtype, shape) = (init.dtype("dtype")?, init.shape("shape")?);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let known = shape.known();
        let known = known.ok_or_else(|| err!(InvalidArgument, "shape {shape} is not known"))?;
        let variable = Arc::new(StoredVariable::new(name.clone(), dtype, shape.clone()));
        variable.assign(ctx.alloc(dtype, known)?);
        let resources = &ctx.step().step_resources;
        let name = temporary_name(&name, ctx);
        resources.create(TEMPORARIES, &name, Temporary(variable.clone()))?;
        ctx.set_ref(0, variable)
    }))
}

fn destroy_temporary(init: &KernelInit<'_>) -> Result<KernelBox> {
    let name = init.string("var_name")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let value = ctx.take_value(0)?.into_tensor()?;
        let name = temporary_name(&name, ctx);
        ctx.step().step_resources.remove::<Temporary>(TEMPORARIES, &name)?;
        ctx.set(0, value)
    }))
}

struct Assign {
    target: Target,
    validate_shape: bool,
}

impl Kernel for Assign {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let variable = self.target.get(ctx)?;
        let value = ctx.take(1)?;
        let old = variable.update(|slot| {
            if self.validate_shape {
                let (fits, lhs) = match slot.as_ref() {
                    Some(now) => (now.shape() == value.shape(), now.shape().into()),
                    None => {
                        let declared = variable.declared_shape();
                        (declared.admits(value.shape()), declared.clone())
                    }
                };
                ensure!(
                    fits,
                    InvalidArgument,
                    "Assign requires shapes of both tensors to match. lhs shape= {lhs} rhs shape= {}",
                    value.shape()
                );
            }
            StoredVariable::replace(slot, value)
        })?;
        // Freed after the lock is released.
        drop(old);
        ctx.set_ref(0, variable)
    }
}

fn assign(init: &KernelInit<'_>) -> Result<KernelBox> {
    let validate_shape = init.bool("validate_shape")?;
    Ok(KernelBox::new(Assign { target: Target::new(init, 0), validate_shape }))
}

fn assigned_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    if c.attrs.bool("validate_shape")? {
        return shape::merged_inputs(c);
    }
    Ok(vec![c.input(1)])
}

/// An empty shape means an unknown one in graphs of old TensorFlow versions.
fn old_variable_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let shape = c.attrs.shape("shape")?;
    Ok(vec![if shape.rank() == Some(0) { PartialShape::unknown() } else { shape }])
}

fn is_initialized(ctx: &mut Ctx<'_>) -> Result<()> {
    let is = ctx.ref_input(0)?.is_initialized();
    ctx.set(0, Tensor::scalar(is))
}

pub(crate) fn register(c: &mut Catalog) {
    let shapes: [(_, fn(&ShapeCtx<'_>) -> Result<_>); 2] =
        [("Variable", old_variable_shape), ("VariableV2", shape::from_attr)];
    for (name, shape) in shapes {
        c.op(name)
            .doc("A reference to a variable that outlives the step.")
            .output("ref: Ref(dtype)")
            .attr("shape: shape")
            .attr("dtype: type")
            .attr("container: string = ''")
            .attr("shared_name: string = ''")
            .stateful()
            .role(OpRole::Variable)
            .shape(shape)
            .anywhere()
            .cpu(make_variable);
    }
    c.op("TemporaryVariable")
        .doc("A reference to a variable that lasts until it is destroyed, or the step ends.")
        .output("ref: Ref(dtype)")
        .attr("shape: shape")
        .attr("dtype: type")
        .attr("var_name: string = ''")
        .stateful()
        .shape(shape::from_attr)
        .cpu(temporary);
    c.op("DestroyTemporaryVariable")
        .doc("The last value of a temporary variable, which is gone then.")
        .input("ref: Ref(T)")
        .output("value: T")
        .attr("T: type")
        .attr("var_name: string")
        .shape(shape::same_as_input)
        .cpu(destroy_temporary);
    c.op("Assign")
        .doc("Replaces the value of a variable.")
        .input("ref: Ref(T)")
        .input("value: T")
        .output("output_ref: Ref(T)")
        .attr("T: type")
        .attr("validate_shape: bool = true")
        .attr("use_locking: bool = true")
        .allows_uninitialized_input()
        .shape(assigned_shape)
        .anywhere()
        .cpu(assign);
    c.op("IsVariableInitialized")
        .doc("Whether a variable has a value.")
        .input("ref: Ref(dtype)")
        .output("is_initialized: bool")
        .attr("dtype: type")
        .allows_uninitialized_input()
        .reads_variables()
        .shape(shape::scalar)
        .anywhere()
        .host_outputs(&["is_initialized"])
        .cpu_fn(is_initialized);
    c.no_gradient(&["Assign"]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;

    fn variable(resources: &Arc<Resources>) -> Arc<StoredVariable> {
        shaped(resources, 2)
    }

    fn shaped(resources: &Arc<Resources>, size: usize) -> Arc<StoredVariable> {
        let made = check("VariableV2")
            .resources(resources)
            .attr("shape", PartialShape::from([size]))
            .attr("dtype", DType::Float)
            .run_values()
            .unwrap();
        match made.into_iter().next() {
            Some(Value::Ref(v)) => v,
            _ => panic!("not a reference"),
        }
    }

    #[test]
    fn a_variable_is_found_again_until_its_container_is_cleared() {
        let resources = Arc::new(Resources::new());
        let v = variable(&resources);
        assert_eq!(v.name(), "node_under_test");
        check("IsVariableInitialized").ref_input(v.clone()).gives(Tensor::scalar(false));
        v.assign(Tensor::vector(&[1.0f32, 2.0]));
        assert!(Arc::ptr_eq(&v, &variable(&resources)));
        check("IsVariableInitialized").ref_input(v.clone()).gives(Tensor::scalar(true));
        resources.clear_container("localhost");
        assert!(!variable(&resources).is_initialized());
    }

    #[test]
    fn a_variable_without_elements_is_initialised_from_the_beginning() {
        let v = shaped(&Arc::new(Resources::new()), 0);
        check("IsVariableInitialized").ref_input(v).gives(Tensor::scalar(true));
    }

    #[test]
    fn assigning_checks_the_shape_unless_told_not_to() {
        let v = variable(&Arc::new(Resources::new()));
        let assign = |t: Tensor| check("Assign").ref_input(v.clone()).input(t);
        assign(Tensor::vector(&[1.0f32])).fails(
            Code::InvalidArgument,
            "Assign requires shapes of both tensors to match. lhs shape= [2] rhs shape= [1]",
        );
        let got = assign(Tensor::vector(&[1.0f32, 2.0])).run_values().unwrap();
        assert!(matches!(&got[0], Value::Ref(r) if Arc::ptr_eq(r, &v)));
        assert_eq!(v.read().unwrap(), Tensor::vector(&[1.0f32, 2.0]));
        assign(Tensor::scalar(3.0f32)).attr("validate_shape", false).run_values().unwrap();
        assert_eq!(v.read().unwrap(), Tensor::scalar(3.0f32));
        // The next value must match the new shape.
        assign(Tensor::vector(&[1.0f32, 2.0])).fails(Code::InvalidArgument, "lhs shape= []");
    }

    #[test]
    fn a_temporary_variable_can_be_destroyed_once() {
        let got = check("TemporaryVariable")
            .attr("shape", PartialShape::from([2]))
            .attr("dtype", DType::Float)
            .attr("var_name", "t")
            .run_values()
            .unwrap();
        let Some(Value::Ref(v)) = got.first() else { panic!("not a reference") };
        assert!(v.is_initialized());
        // The checker runs every op in a step of its own.
        check("DestroyTemporaryVariable")
            .ref_input(v.clone())
            .attr("var_name", "t")
            .fails(Code::NotFound, "t/frame:0/iter:0 does not exist");
    }
}
