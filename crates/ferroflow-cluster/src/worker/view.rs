//! How a session sees the cluster: the name of this task in it, and the addresses of the others.

use super::transport::{Remote, Transport};
use crate::key::{destination_of, source_of};
use crate::spec::{ClusterSpec, task_name};
use ferroflow_core::{DeviceInfo, DeviceName, HashMap, HashSet, Result, bail};
use ferroflow_identity::{ANY_ROLE, PeerIdentity, task_role};
use std::sync::Arc;

/// A task's name, its devices under that name, and its peers' addresses.
pub(crate) struct View {
    /// `/job:ps/replica:0/task:0`.
    pub name: String,
    pub devices: Vec<Arc<DeviceInfo>>,
    /// How the keys of values begin that these devices send.
    origins: Vec<String>,
    /// By task name.
    addresses: HashMap<String, String>,
    /// The roles of all tasks in certificates.
    roles: HashSet<String>,
    pub transport: Arc<dyn Transport>,
}

impl View {
    /// Task `index` of `job` in `cluster`, with `devices`, which are renamed if they are another's.
    pub fn new(
        cluster: &ClusterSpec,
        job: &str,
        index: u32,
        devices: &[Arc<DeviceInfo>],
        transport: Arc<dyn Transport>,
    ) -> View {
        let own = task_name(job, index);
        let devices: Vec<_> = devices.iter().map(|d| renamed(d, &own)).collect();
        let origins = devices.iter().map(|d| format!("{};{:016x};", d.text, d.incarnation));
        let origins = origins.collect();
        let addresses = cluster
            .tasks()
            .map(|(job, index, address)| (task_name(job, index).to_string(), address.to_string()))
            .collect();
        let roles = cluster.tasks().map(|(job, index, _)| task_role(job, index)).collect();
        View { name: own.to_string(), devices, origins, addresses, roles, transport }
    }

    /// Whether a device, by its full name, is one of this task's.
    pub fn is_local(&self, device: &str) -> bool {
        device.strip_prefix(self.name.as_str()).is_some_and(|rest| rest.starts_with('/'))
    }

    /// The receiving device of a key, if a device of this task sends the value.
    pub fn destination_of<'k>(&self, key: &'k str) -> Option<&'k str> {
        match self.origins.iter().find_map(|origin| key.strip_prefix(origin.as_str())) {
            Some(rest) => Some(source_of(rest)),
            None => self.is_local(key).then(|| destination_of(key)),
        }
    }

    /// Whether the holder of a certificate with these roles may be a task of the cluster.
    pub fn has_task(&self, holder: &PeerIdentity, roles: &[String]) -> bool {
        let is_task = |role: &String| role == ANY_ROLE || self.roles.contains(role);
        roles.iter().any(is_task) || self.addresses.values().any(|at| holder.is_any_of_host(at))
    }

    /// The address of a task, by its name.
    pub fn address(&self, task: &str) -> Option<&str> {
        self.addresses.get(task).map(String::as_str)
    }

    /// The task that orders collectives by default: the chief, the master, worker 0, or the first
    /// task.
    pub fn first_task(&self) -> String {
        let known = |job: &str| Some(task_name(job, 0).to_string());
        let usual = ["chief", "master", "worker"].into_iter().filter_map(known);
        let usual = usual.into_iter().find(|t| self.addresses.contains_key(t));
        usual.or_else(|| self.addresses.keys().min().cloned()).unwrap_or_else(|| self.name.clone())
    }

    /// The task of a device, by its full name, and its address.
    pub fn remote(&self, device: &str) -> Result<Remote<'_>> {
        // Keys have full names, so that cutting off the device is nearly always enough.
        let written = task_of(device);
        if let Some((task, address)) = self.addresses.get_key_value(written) {
            return Ok(Remote { task, address });
        }
        let task = DeviceName::parse(device)?.task_name();
        match self.addresses.get_key_value(&task) {
            Some((task, address)) => Ok(Remote { task, address }),
            None => bail!(Internal, "No worker known as {task}"),
        }
    }
}

/// A device as one of `task`'s.
pub(crate) fn renamed(device: &Arc<DeviceInfo>, task: &DeviceName) -> Arc<DeviceInfo> {
    let (kind, id) = (device.name.kind.clone(), device.name.id);
    let name = DeviceName { kind, id, ..task.clone() };
    if device.name == name {
        return device.clone();
    }
    Arc::new(DeviceInfo { text: name.to_string(), name, ..DeviceInfo::clone(device) })
}

/// The task in the name of a device that is written in full.
pub(crate) fn task_of(device: &str) -> &str {
    // The name of a device is too short for `memrchr` to be faster.
    match device.bytes().rposition(|byte| byte == b'/') {
        Some(end) if device[end + 1..].starts_with("device:") => &device[..end],
        _ => device,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::unlinked;
    use super::*;

    #[tokio::test]
    async fn a_session_may_know_the_task_by_another_name() {
        let devices = [Arc::new(DeviceInfo::cpu("ps", 0, 0, 7))];
        let cluster = ClusterSpec::parse("other=a:1,b:2").unwrap();
        let view = View::new(&cluster, "other", 1, &devices, unlinked());
        assert_eq!(view.devices[0].text, "/job:other/replica:0/task:1/device:CPU:0");
        assert_eq!(view.devices[0].incarnation, 7);
        assert!(view.is_local("/job:other/replica:0/task:1/device:CPU:0"));
        assert!(!view.is_local("/job:other/replica:0/task:12/device:CPU:0"));
        assert!(!view.is_local("/job:ps/replica:0/task:0/device:CPU:0"));
        let own = "/job:other/replica:0/task:1/device:CPU:0";
        let to = |key: &str| view.destination_of(key).map(str::to_string);
        for incarnation in ["0000000000000007", "8"] {
            assert_eq!(to(&format!("{own};{incarnation};there;x;0:0")).as_deref(), Some("there"));
        }
        assert_eq!(to("/job:ps/replica:0/task:0/device:CPU:0;0000000000000007;there;x;0:0"), None);
        for text in
            ["/job:other/replica:0/task:0/device:CPU:0", "/job:other/replica:0/task:0/cpu:0"]
        {
            assert_eq!(view.remote(text).unwrap().address, "a:1");
        }
        assert!(view.remote("/job:other/replica:0/task:2/device:CPU:0").is_err());
    }
}
