//! Resources: objects that outlive a step (variables, queues, tables), found by container and name.

use crate::{DType, HashMap, PartialShape, Result, err};
use parking_lot::RwLock;
use std::any::{Any, TypeId, type_name};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An object in [`Resources`].
pub trait Resource: Any + Send + Sync {
    /// The name of the type in errors.
    fn type_name() -> &'static str
    where
        Self: Sized,
    {
        type_name::<Self>().rsplit("::").next().unwrap_or_default()
    }

    /// A description for errors and listings.
    fn describe(&self) -> String;

    /// Called when the resource is deleted or its container is cleared. Ends the operations that
    /// wait on it.
    fn close(&self) {}
}

impl Resource for crate::StoredVariable {
    fn type_name() -> &'static str {
        "Variable"
    }

    fn describe(&self) -> String {
        format!("variable {} ({})", self.name(), self.dtype())
    }
}

/// The value of a resource tensor: the name of a resource on a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceHandle {
    /// The full name of the device that owns the resource.
    pub device: String,
    /// The container of the resource.
    pub container: String,
    /// The name of the resource.
    pub name: String,
    /// TensorFlow's hash of the C++ type. Kept so that handles made by TensorFlow stay valid.
    pub hash_code: u64,
    /// The name of the resource's type.
    pub type_name: String,
    /// The dtypes and shapes of the values behind the handle.
    pub dtypes_and_shapes: Vec<(DType, PartialShape)>,
}

type Key = (TypeId, String);

/// The resources of a device, or of a single isolated session, by container, type and name. All
/// sessions that use the same names share them.
#[derive(Default)]
pub struct Resources {
    containers: RwLock<HashMap<String, HashMap<Key, Arc<dyn Resource>>>>,
    removals: AtomicU64,
}

impl Resources {
    /// No resources.
    pub fn new() -> Resources {
        Resources::default()
    }

    /// A counter that changes when a resource is removed. A caller may keep using a resource that
    /// it found, as long as the counter, read before the look-up, stays the same.
    pub fn removals(&self) -> u64 {
        self.removals.load(Ordering::Acquire)
    }

    /// The resource, or `None` if there is none with this type and name.
    pub fn find<T: Resource>(&self, container: &str, name: &str) -> Option<Arc<T>> {
        let containers = self.containers.read();
        // The key needs an owned name. The copy is short, and kernels keep the `Arc` they found
        // instead of looking it up in every step.
        let key = (TypeId::of::<T>(), name.to_string());
        let found = containers.get(container)?.get(&key)?.clone();
        drop(containers);
        downcast(found)
    }

    /// The resource. `NotFound` if there is none.
    pub fn lookup<T: Resource>(&self, container: &str, name: &str) -> Result<Arc<T>> {
        self.find(container, name).ok_or_else(|| {
            err!(NotFound, "Resource {container}/{name}/{} does not exist.", T::type_name())
        })
    }

    /// The resource. Calls `make` if there is none yet, at most once per name.
    pub fn lookup_or_create<T: Resource>(
        &self,
        container: &str,
        name: &str,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        if let Some(found) = self.find(container, name) {
            return Ok(found);
        }
        let mut containers = self.containers.write();
        let slot = containers.entry(container.to_string()).or_default();
        let key = (TypeId::of::<T>(), name.to_string());
        if let Some(found) = slot.get(&key) {
            return Ok(downcast(found.clone()).expect("keys hold the type"));
        }
        let made = Arc::new(make()?);
        slot.insert(key, made.clone());
        Ok(made)
    }

    /// Adds a resource. `AlreadyExists` if the name is taken.
    pub fn create<T: Resource>(&self, container: &str, name: &str, resource: T) -> Result<Arc<T>> {
        let mut containers = self.containers.write();
        let slot = containers.entry(container.to_string()).or_default();
        let key = (TypeId::of::<T>(), name.to_string());
        if slot.contains_key(&key) {
            return Err(err!(AlreadyExists, "Resource {container}/{name} already exists."));
        }
        let made = Arc::new(resource);
        slot.insert(key, made.clone());
        Ok(made)
    }

    /// Removes the resource with this name, of any type. `NotFound` if there is none.
    pub fn delete(&self, container: &str, name: &str) -> Result<()> {
        let removed: Vec<Arc<dyn Resource>> = {
            let mut containers = self.containers.write();
            let Some(slot) = containers.get_mut(container) else {
                return Err(err!(NotFound, "Container {container} does not exist."));
            };
            self.removals.fetch_add(1, Ordering::Release);
            let keys: Vec<Key> = slot.keys().filter(|k| k.1 == name).cloned().collect();
            keys.iter().filter_map(|k| slot.remove(k)).collect()
        };
        if removed.is_empty() {
            return Err(err!(NotFound, "Resource {container}/{name} does not exist."));
        }
        removed.iter().for_each(|r| r.close());
        Ok(())
    }

    /// Removes a resource of one type. `NotFound` if there is none.
    pub fn remove<T: Resource>(&self, container: &str, name: &str) -> Result<Arc<T>> {
        let key = (TypeId::of::<T>(), name.to_string());
        let removed = {
            let mut containers = self.containers.write();
            self.removals.fetch_add(1, Ordering::Release);
            containers.get_mut(container).and_then(|slot| slot.remove(&key))
        };
        removed
            .and_then(downcast)
            .ok_or_else(|| err!(NotFound, "Resource {container}/{name} does not exist."))
    }

    /// Removes all resources of a container.
    pub fn clear_container(&self, container: &str) {
        let dropped = {
            let mut containers = self.containers.write();
            self.removals.fetch_add(1, Ordering::Release);
            containers.remove(container)
        };
        for resource in dropped.into_iter().flatten() {
            resource.1.close();
        }
    }

    /// Removes all resources.
    pub fn clear(&self) {
        let dropped = {
            let mut containers = self.containers.write();
            self.removals.fetch_add(1, Ordering::Release);
            std::mem::take(&mut *containers)
        };
        for resource in dropped.into_values().flatten() {
            resource.1.close();
        }
    }
}

fn downcast<T: Resource>(resource: Arc<dyn Resource>) -> Option<Arc<T>> {
    let any: Arc<dyn Any + Send + Sync> = resource;
    any.downcast().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, StoredVariable, Tensor};

    #[test]
    fn a_second_creation_returns_the_resource_of_the_same_name() {
        let r = Resources::new();
        let make = || Ok(StoredVariable::new("w", DType::Float, PartialShape::unknown()));
        let a = r.lookup_or_create("ps", "w", make).unwrap();
        let b = r.lookup_or_create("ps", "w", make).unwrap();
        a.assign(Tensor::scalar(1.0f32));
        assert!(b.is_initialized());
        assert!(!r.lookup_or_create("worker", "w", make).unwrap().is_initialized());
        r.clear_container("ps");
        let e = r.lookup::<StoredVariable>("ps", "w").err().unwrap();
        assert_eq!(e.code(), Code::NotFound);
        assert!(r.find::<StoredVariable>("worker", "w").is_some());
    }
}
