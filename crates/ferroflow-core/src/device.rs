//! Device names, full and partial, and information about devices.

use crate::{Gpu, Result, bail};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A device name that may leave components open: `/job:ps/task:1`, `/cpu:0`, or the full name
/// `/job:worker/replica:0/task:0/device:CPU:0`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceName {
    /// The job, such as `worker`.
    pub job: Option<String>,
    /// The replica.
    pub replica: Option<u32>,
    /// The task within the job.
    pub task: Option<u32>,
    /// The device type in upper case, such as `CPU`.
    pub kind: Option<String>,
    /// The device number.
    pub id: Option<u32>,
}

impl DeviceName {
    /// Parses TensorFlow's grammar. `*` leaves a component open. `""` and `/` leave all components
    /// open.
    pub fn parse(text: &str) -> Result<DeviceName> {
        let mut name = DeviceName::default();
        for part in text.split('/').filter(|p| !p.is_empty()) {
            if name.set(part).is_none() {
                bail!(InvalidArgument, "Malformed device specification '{text}'");
            }
        }
        Ok(name)
    }

    fn set(&mut self, part: &str) -> Option<()> {
        let number = |s: &str| -> Option<Option<u32>> {
            if s == "*" { Some(None) } else { Some(Some(s.parse().ok()?)) }
        };
        let (key, value) = part.split_once(':')?;
        match key {
            "job" => {
                let ok = |c: char| c.is_ascii_alphanumeric() || c == '_';
                if value != "*" {
                    let first = value.chars().next()?;
                    if !first.is_ascii_alphabetic() || !value.chars().all(ok) {
                        return None;
                    }
                    self.job = Some(value.to_string());
                }
            }
            "replica" => self.replica = number(value)?,
            "task" => self.task = number(value)?,
            "device" => {
                let (kind, id) = value.split_once(':').unwrap_or((value, "*"));
                if kind.is_empty() {
                    return None;
                }
                self.kind = (kind != "*").then(|| kind.to_ascii_uppercase());
                self.id = number(id)?;
            }
            "cpu" | "CPU" | "gpu" | "GPU" => {
                self.kind = Some(key.to_ascii_uppercase());
                self.id = number(value)?;
            }
            _ => return None,
        }
        Some(())
    }

    /// Whether the components that both names contain are equal.
    pub fn is_compatible(&self, other: &DeviceName) -> bool {
        fn agree<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
            a.is_none() || b.is_none() || a == b
        }
        agree(&self.job, &other.job)
            && agree(&self.replica, &other.replica)
            && agree(&self.task, &other.task)
            && agree(&self.kind, &other.kind)
            && agree(&self.id, &other.id)
    }

    /// This name, with open components taken from `other`.
    pub fn or(&self, other: &DeviceName) -> DeviceName {
        DeviceName {
            job: self.job.clone().or_else(|| other.job.clone()),
            replica: self.replica.or(other.replica),
            task: self.task.or(other.task),
            kind: self.kind.clone().or_else(|| other.kind.clone()),
            id: self.id.or(other.id),
        }
    }

    /// Whether no component is open.
    pub fn is_full(&self) -> bool {
        self.job.is_some()
            && self.replica.is_some()
            && self.task.is_some()
            && self.kind.is_some()
            && self.id.is_some()
    }

    /// `/job:J/replica:R/task:T`, which names a process.
    pub fn task_name(&self) -> String {
        DeviceName { kind: None, id: None, ..self.clone() }.to_string()
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(job) = &self.job {
            write!(f, "/job:{job}")?;
        }
        if let Some(replica) = self.replica {
            write!(f, "/replica:{replica}")?;
        }
        if let Some(task) = self.task {
            write!(f, "/task:{task}")?;
        }
        match (&self.kind, self.id) {
            (None, None) => Ok(()),
            (kind, id) => {
                write!(f, "/device:{}:", kind.as_deref().unwrap_or("*"))?;
                match id {
                    Some(id) => write!(f, "{id}"),
                    None => f.write_str("*"),
                }
            }
        }
    }
}

/// What a device can do, as its task has measured it. 0 stands for what is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceSpeed {
    /// Floating-point operations per second.
    pub flops: f64,
    /// Bytes per second that it reads and writes.
    pub bandwidth: f64,
    /// Bytes for tensors.
    pub memory: u64,
}

/// A device of a task.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// The full name.
    pub name: DeviceName,
    /// The full name as text, for keys and error messages.
    pub text: String,
    /// A random number, never 0, that changes when the process restarts.
    pub incarnation: u64,
    /// Bytes of memory of the device.
    pub memory_limit: i64,
    /// The hardware, in TensorFlow's words; empty for a CPU.
    pub description: String,
    /// The GPU, if it is one of this process.
    pub gpu: Option<Arc<dyn Gpu>>,
    /// Its speed, once it has been measured.
    pub speed: OnceLock<DeviceSpeed>,
}

impl DeviceInfo {
    /// A device with its full name and incarnation.
    pub fn new(name: DeviceName, incarnation: u64) -> DeviceInfo {
        let text = name.to_string();
        let memory_limit = 256 << 20;
        DeviceInfo {
            name,
            text,
            incarnation,
            memory_limit,
            description: String::new(),
            gpu: None,
            speed: OnceLock::new(),
        }
    }

    /// CPU number `id` of a task.
    pub fn cpu(job: &str, task: u32, id: u32, incarnation: u64) -> DeviceInfo {
        DeviceInfo::new(full_name(job, task, "CPU", id), incarnation)
    }

    /// GPU number `id` of a task of this process.
    pub fn gpu(job: &str, task: u32, id: u32, incarnation: u64, gpu: Arc<dyn Gpu>) -> DeviceInfo {
        let memory_limit = i64::try_from(gpu.memory().limit).unwrap_or(i64::MAX);
        let info = DeviceInfo::new(full_name(job, task, "GPU", id), incarnation);
        DeviceInfo { memory_limit, description: gpu.description(), gpu: Some(gpu), ..info }
    }

    /// The device type, such as `CPU`.
    pub fn kind(&self) -> &str {
        self.name.kind.as_deref().unwrap_or("CPU")
    }
}

fn full_name(job: &str, task: u32, kind: &str, id: u32) -> DeviceName {
    DeviceName {
        job: Some(job.to_string()),
        replica: Some(0),
        task: Some(task),
        kind: Some(kind.to_string()),
        id: Some(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_printed_as_they_were_parsed() {
        let full = "/job:worker/replica:0/task:3/device:CPU:1";
        assert_eq!(DeviceName::parse(full).unwrap().to_string(), full);
        assert_eq!(DeviceName::parse("/cpu:0").unwrap().to_string(), "/device:CPU:0");
        assert_eq!(DeviceName::parse("/job:ps/task:1").unwrap().task_name(), "/job:ps/task:1");
        assert_eq!(DeviceName::parse("/").unwrap(), DeviceName::default());
        for bad in ["/job:", "/job:1", "/task:x", "/nothing:1", "cpu", "/device:", "/cpu:-1"] {
            assert!(DeviceName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_open_component_is_compatible_with_any_value() {
        let a = DeviceName::parse("/job:ps").unwrap();
        let b = DeviceName::parse("/job:ps/task:1/cpu:*").unwrap();
        assert!(a.is_compatible(&b));
        assert!(!a.is_compatible(&DeviceName::parse("/job:worker").unwrap()));
    }
}
