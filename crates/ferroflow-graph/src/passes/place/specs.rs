//! Device names by number: a graph of a million nodes uses only a few different ones.

use super::groups::ColocationGroup;
use ferroflow_core::DeviceName;
use std::collections::HashMap;

/// The empty name, which matches every device.
pub(super) const OPEN: u32 = 0;

pub(super) struct Specs {
    list: Vec<DeviceName>,
    numbers: HashMap<DeviceName, u32>,
}

impl Default for Specs {
    fn default() -> Specs {
        let open = DeviceName::default();
        Specs { list: vec![open.clone()], numbers: HashMap::from([(open, OPEN)]) }
    }
}

impl Specs {
    pub fn intern(&mut self, name: DeviceName) -> u32 {
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        let number = self.list.len() as u32;
        self.list.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    pub fn get(&self, number: u32) -> &DeviceName {
        &self.list[number as usize]
    }

    pub fn are_compatible(&self, a: u32, b: u32) -> bool {
        a == b || self.get(a).is_compatible(self.get(b))
    }

    /// All requests of a group, merged.
    pub fn wanted(&self, group: ColocationGroup) -> DeviceName {
        self.get(group.requested).or(self.get(group.resource))
    }

    /// Merges two groups. The error says how they differ.
    pub fn merge_groups(
        &mut self,
        a: ColocationGroup,
        b: ColocationGroup,
        soft: bool,
    ) -> Result<ColocationGroup, String> {
        let merged = ColocationGroup {
            assigned: self.merge(a.assigned, b.assigned, false)?,
            resource: self.merge(a.resource, b.resource, false)?,
            requested: self.merge(a.requested, b.requested, soft)?,
            needs_cpu: a.needs_cpu || b.needs_cpu,
        };
        self.merge(merged.assigned, merged.requested, soft)?;
        self.merge(merged.resource, merged.requested, soft)?;
        Ok(merged)
    }

    /// Merges two names. If `soft`, the kind of device can be dropped.
    fn merge(&mut self, a: u32, b: u32, soft: bool) -> Result<u32, String> {
        if a == b || b == OPEN {
            return Ok(a);
        }
        if a == OPEN {
            return Ok(b);
        }
        let (x, y) = (self.get(a), self.get(b));
        let differ = |what: &str| {
            Err(format!("Cannot merge devices with incompatible {what}: '{x}' and '{y}'"))
        };
        fn clash<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
            a.is_some() && b.is_some() && a != b
        }
        if clash(&x.job, &y.job) {
            return differ("jobs");
        }
        if clash(&x.replica, &y.replica) {
            return differ("replicas");
        }
        if clash(&x.task, &y.task) {
            return differ("tasks");
        }
        let mut merged = x.or(y);
        let (kinds, ids) = (clash(&x.kind, &y.kind), clash(&x.id, &y.id));
        if (kinds || ids) && !soft {
            return differ(if kinds { "types" } else { "ids" });
        }
        if kinds {
            merged.kind = None;
        }
        if kinds || ids {
            merged.id = None;
        }
        Ok(self.intern(merged))
    }
}
