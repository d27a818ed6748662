//! Resource handles: kernels use them to name, find and release the resources of a session.

use crate::prelude::*;
use bytes::Bytes;
use ferroflow_graph::ResourceName;
use parking_lot::Mutex;
use std::sync::Weak;

/// The kernel of an op that makes or finds a resource and outputs a handle to it. A resource
/// without a shared name is dropped with the kernel.
pub struct Anchor<T: Resource> {
    name: ResourceName,
    handle: Value,
    kept: Mutex<Option<Sight<T>>>,
}

impl<T: Resource> Anchor<T> {
    /// `by_node`: without a shared name the resource has the node's name, see
    /// [`KernelInit::resource_name`].
    pub fn new(init: &KernelInit<'_>, by_node: bool, type_name: &str) -> Result<Anchor<T>> {
        let name = init.resource_name(by_node)?;
        let is_ref = init.outputs.first().is_some_and(|port| port.is_ref);
        let handle = if is_ref {
            ref_handle(&name.container, &name.name)
        } else {
            Tensor::handle(ResourceHandle {
                device: init.node.device.text.clone(),
                container: name.container.clone(),
                name: name.name.clone(),
                type_name: type_name.into(),
                ..Default::default()
            })
            .into()
        };
        Ok(Anchor { name, handle, kept: Mutex::new(None) })
    }

    /// The handle that the op outputs.
    pub fn handle(&self) -> Value {
        self.handle.clone()
    }

    /// The resource. `make` creates it under its name unless it exists. An existing resource must
    /// pass `check`.
    pub fn get(
        &self,
        resources: &Arc<Resources>,
        make: impl FnOnce(&str) -> Result<T>,
        check: impl FnOnce(&T) -> Result<()>,
    ) -> Result<Arc<T>> {
        let mut kept = self.kept.lock();
        if let Some(resource) = kept.as_ref().and_then(|sight| sight.valid(resources)) {
            return Ok(resource);
        }
        let ResourceName { container, name, .. } = &self.name;
        let (removals, mut made) = (resources.removals(), false);
        let resource = resources.lookup_or_create(container, name, || {
            made = true;
            make(name)
        })?;
        if !made {
            check(&resource)?;
        }
        *kept = Some(Sight::new(resources, removals, &resource));
        Ok(resource)
    }

    /// Calls [`Anchor::get`] and outputs the handle.
    pub fn output(
        &self,
        ctx: &mut Ctx<'_>,
        make: impl FnOnce(&str) -> Result<T>,
        check: impl FnOnce(&T) -> Result<()>,
    ) -> Result<()> {
        self.get(&ctx.step().resources, make, check)?;
        ctx.set_value(0, self.handle.clone())
    }
}

impl<T: Resource> Drop for Anchor<T> {
    fn drop(&mut self) {
        if !self.name.is_private {
            return;
        }
        if let Some(resources) = self.kept.get_mut().take().and_then(|s| s.resources.upgrade())
            && let Ok(resource) = resources.remove::<T>(&self.name.container, &self.name.name)
        {
            resource.close();
        }
    }
}

/// A reference to a string vector of container and name. Ops used such handles before resource
/// tensors existed.
pub fn ref_handle(container: &str, name: &str) -> Value {
    let texts = [container, name].map(|s| Bytes::copy_from_slice(s.as_bytes()));
    let handle = StoredVariable::new(name, DType::String, PartialShape::from([2]));
    handle.assign(Tensor::from_strings([2], texts.to_vec()).expect("two strings fill [2]"));
    Value::Ref(Arc::new(handle))
}

/// Container and name in a handle of either kind.
pub fn name_in(handle: &Value) -> Result<(String, String)> {
    let text = |b: &Bytes| String::from_utf8_lossy(b).into_owned();
    let strings = match handle {
        Value::Ref(variable) => variable.read()?,
        Value::Tensor(t) if t.dtype() == DType::String => t.clone(),
        Value::Tensor(t) => match t.handles()? {
            [handle] => return Ok((handle.container.clone(), handle.name.clone())),
            _ => bail!(InvalidArgument, "expected one resource handle, got shape {}", t.shape()),
        },
        _ => bail!(InvalidArgument, "expected a handle, got nothing"),
    };
    match strings.strings()? {
        [container, name] => Ok((text(container), text(name))),
        _ => bail!(
            InvalidArgument,
            "Resource handle must have 2 elements, but had shape: {}",
            strings.shape()
        ),
    }
}

/// Finds the resource that a handle names and caches it for the next step.
pub struct Seen<T: Resource>(Mutex<Option<(Value, Sight<T>)>>);

impl<T: Resource> Default for Seen<T> {
    fn default() -> Seen<T> {
        Seen::new()
    }
}

impl<T: Resource> Seen<T> {
    pub fn new() -> Seen<T> {
        Seen(Mutex::new(None))
    }

    pub fn find(&self, resources: &Arc<Resources>, handle: &Value) -> Result<Arc<T>> {
        let mut seen = self.0.lock();
        if let Some((last, sight)) = &*seen
            && same_handle(last, handle)
            && let Some(resource) = sight.valid(resources)
        {
            return Ok(resource);
        }
        let removals = resources.removals();
        let (container, name) = name_in(handle)?;
        let resource = resources.lookup(&container, &name)?;
        *seen = Some((handle.clone(), Sight::new(resources, removals, &resource)));
        Ok(resource)
    }
}

/// The resource of the last look-up, and its handle.
struct Sight<T> {
    resources: Weak<Resources>,
    removals: u64,
    resource: Weak<T>,
}

impl<T: Resource> Sight<T> {
    fn new(resources: &Arc<Resources>, removals: u64, resource: &Arc<T>) -> Sight<T> {
        Sight { resources: Arc::downgrade(resources), removals, resource: Arc::downgrade(resource) }
    }

    /// The cached resource, if it certainly still exists.
    fn valid(&self, resources: &Arc<Resources>) -> Option<Arc<T>> {
        let same = std::ptr::eq(self.resources.as_ptr(), Arc::as_ptr(resources));
        (same && self.removals == resources.removals()).then(|| self.resource.upgrade()).flatten()
    }
}

/// Whether both are the same handle in memory, not only equal.
fn same_handle(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Ref(a), Value::Ref(b)) => Arc::ptr_eq(a, b),
        (Value::Tensor(a), Value::Tensor(b)) => match (a.handles(), b.handles()) {
            (Ok(a), Ok(b)) => std::ptr::eq(a, b),
            _ => false,
        },
        _ => false,
    }
}

/// The variable that an input refers to: through a reference, or through a resource handle.
pub enum Target {
    Ref(usize),
    Resource(usize, Seen<StoredVariable>),
}

impl Target {
    pub fn new(init: &KernelInit<'_>, input: usize) -> Target {
        match init.inputs.get(input) {
            Some(port) if port.is_ref => Target::Ref(input),
            _ => Target::Resource(input, Seen::new()),
        }
    }

    pub fn get(&self, ctx: &Ctx<'_>) -> Result<Arc<StoredVariable>> {
        let variable = match self {
            Target::Ref(i) => ctx.ref_input(*i).cloned()?,
            Target::Resource(i, seen) => {
                let handle = Value::Tensor(ctx.input(*i)?.clone());
                seen.find(&ctx.step().resources, &handle)?
            }
        };
        variable.move_to(ctx.node().device.gpu.as_ref())?;
        Ok(variable)
    }

    /// Passes the reference on to output 0 if the op has such an output.
    pub fn pass_on(&self, ctx: &mut Ctx<'_>, variable: Arc<StoredVariable>) -> Result<()> {
        match self {
            Target::Ref(_) if ctx.num_outputs() > 0 => ctx.set_ref(0, variable),
            _ => Ok(()),
        }
    }
}

/// Runs `change` on the values of several initialised variables under all their locks. Locks are
/// taken in order of address, so that two such updates cannot deadlock.
pub fn modify_all(
    variables: &[Arc<StoredVariable>],
    change: &mut dyn FnMut(&mut [&mut Tensor]) -> Result<()>,
) -> Result<()> {
    let order = by_address(variables)?;
    nest(variables, &order, Vec::with_capacity(order.len()), change)
}

/// The indices of the variables, sorted by address. A variable that occurs twice is an error.
fn by_address(variables: &[Arc<StoredVariable>]) -> Result<Vec<usize>> {
    let mut order: Vec<usize> = (0..variables.len()).collect();
    order.sort_by_key(|&i| Arc::as_ptr(&variables[i]));
    for pair in order.windows(2) {
        ensure!(
            !Arc::ptr_eq(&variables[pair[0]], &variables[pair[1]]),
            InvalidArgument,
            "variable {} is given twice",
            variables[pair[0]].name()
        );
    }
    Ok(order)
}

fn nest(
    variables: &[Arc<StoredVariable>],
    order: &[usize],
    mut held: Vec<(usize, &mut Tensor)>,
    change: &mut dyn FnMut(&mut [&mut Tensor]) -> Result<()>,
) -> Result<()> {
    let Some((&first, rest)) = order.split_first() else {
        held.sort_by_key(|(i, _)| *i);
        let mut values: Vec<&mut Tensor> = held.into_iter().map(|(_, t)| t).collect();
        return change(&mut values);
    };
    variables[first].modify(move |value| {
        let mut held: Vec<(usize, &mut Tensor)> = held;
        held.push((first, value));
        nest(variables, rest, held, change)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_variables_change_together_in_the_order_given() {
        let make = |x: f32| {
            let v = StoredVariable::new("v", DType::Float, PartialShape::scalar());
            v.assign(Tensor::scalar(x));
            Arc::new(v)
        };
        let all = [make(1.0), make(2.0), make(3.0)];
        modify_all(&all, &mut |values| {
            for (i, v) in values.iter_mut().enumerate() {
                v.as_mut_slice::<f32>()?[0] += 10.0 * i as f32;
            }
            Ok(())
        })
        .unwrap();
        let got: Vec<f32> = all.iter().map(|v| v.read().unwrap().scalar_value().unwrap()).collect();
        assert_eq!(got, [1.0, 12.0, 23.0]);
        let twice = [all[0].clone(), all[0].clone()];
        assert_eq!(modify_all(&twice, &mut |_| Ok(())).unwrap_err().code(), Code::InvalidArgument);
    }

    #[test]
    fn a_deleted_resource_is_not_found_again() {
        let resources = Arc::new(Resources::new());
        let handle = Value::Tensor(Tensor::handle(ResourceHandle {
            container: "c".into(),
            name: "v".into(),
            ..Default::default()
        }));
        let make = || Ok(StoredVariable::new("v", DType::Float, PartialShape::scalar()));
        let held = resources.lookup_or_create("c", "v", make).unwrap();
        let seen = Seen::<StoredVariable>::new();
        assert!(Arc::ptr_eq(&seen.find(&resources, &handle).unwrap(), &held));
        assert!(Arc::ptr_eq(&seen.find(&resources, &handle).unwrap(), &held));
        resources.delete("c", "v").unwrap();
        let e = seen.find(&resources, &handle).err().unwrap();
        assert_eq!(e.code(), Code::NotFound);
        let again = resources.lookup_or_create("c", "v", make).unwrap();
        assert!(Arc::ptr_eq(&seen.find(&resources, &handle).unwrap(), &again));
    }

    #[test]
    fn old_handles_hold_container_and_name() {
        let (container, name) = name_in(&ref_handle("ps", "q")).unwrap();
        assert_eq!((container.as_str(), name.as_str()), ("ps", "q"));
        assert!(name_in(&Value::Tensor(Tensor::scalar(1.0f32))).is_err());
    }
}
