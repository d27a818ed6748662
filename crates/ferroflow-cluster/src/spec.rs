//! Cluster specs: jobs, tasks and their addresses.

use ferroflow_core::{DeviceName, HashMap, Result, bail, ensure, err};
use ferroflow_identity::{PeerIdentity, task_role};
use std::collections::BTreeMap;

/// Jobs, their tasks by index, and the tasks' addresses `host:port`. Indices may be sparse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSpec {
    jobs: BTreeMap<String, BTreeMap<u32, String>>,
}

impl ClusterSpec {
    /// The roles in certificates of the tasks, by address.
    pub(crate) fn roles(&self) -> HashMap<String, String> {
        self.tasks().map(|(job, index, at)| (at.to_string(), task_role(job, index))).collect()
    }

    /// Parses `{"ps": ["h:p"], "worker": {"3": "h:p"}}`, `ps=h:p;worker=h:p,h:p`, or `@file` where
    /// the file holds one of these.
    pub fn parse(text: &str) -> Result<ClusterSpec> {
        let text = text.trim();
        if let Some(path) = text.strip_prefix('@') {
            let content = std::fs::read_to_string(path)
                .map_err(|e| err!(NotFound, "cannot read the file of cluster spec @{path}: {e}"))?;
            ensure!(
                !content.trim_start().starts_with('@'),
                InvalidArgument,
                "cluster spec {path} refers to another file"
            );
            return ClusterSpec::parse(&content);
        }
        if text.starts_with('{') {
            let json: serde_json::Value = serde_json::from_str(text)
                .map_err(|e| err!(InvalidArgument, "cluster spec is not valid JSON: {e}"))?;
            return ClusterSpec::from_json(&json);
        }
        let mut spec = ClusterSpec::default();
        for part in text.split(';').filter(|p| !p.trim().is_empty()) {
            let Some((job, tasks)) = part.split_once('=') else {
                bail!(
                    InvalidArgument,
                    "expected JOB=HOST:PORT,HOST:PORT in cluster spec, got {part:?}"
                );
            };
            for (index, address) in tasks.split(',').enumerate() {
                spec.add(job.trim(), index as u32, address.trim())?;
            }
        }
        spec.ensure_some()
    }

    /// Reads the `cluster` object of a JSON spec or of `TF_CONFIG`.
    pub fn from_json(json: &serde_json::Value) -> Result<ClusterSpec> {
        let Some(jobs) = json.as_object() else {
            bail!(InvalidArgument, "a cluster spec is an object from jobs to tasks, got {json}");
        };
        let mut spec = ClusterSpec::default();
        for (job, tasks) in jobs {
            let wrong = || err!(InvalidArgument, "job {job:?}: expected addresses, got {tasks}");
            match tasks {
                serde_json::Value::Array(list) => {
                    for (index, address) in list.iter().enumerate() {
                        spec.add(job, index as u32, address.as_str().ok_or_else(wrong)?)?;
                    }
                }
                serde_json::Value::Object(map) => {
                    for (index, address) in map {
                        let index = index.parse().map_err(|_| wrong())?;
                        spec.add(job, index, address.as_str().ok_or_else(wrong)?)?;
                    }
                }
                _ => return Err(wrong()),
            }
        }
        spec.ensure_some()
    }

    /// Makes a spec of tasks: job, index, address.
    pub fn from_tasks<'a>(
        tasks: impl IntoIterator<Item = (&'a str, i32, &'a str)>,
    ) -> Result<ClusterSpec> {
        let mut spec = ClusterSpec::default();
        for (job, index, address) in tasks {
            let Ok(index) = u32::try_from(index) else {
                bail!(InvalidArgument, "job {job:?}: {index} is not the index of a task");
            };
            spec.add(job, index, address)?;
        }
        spec.ensure_some()
    }

    fn add(&mut self, job: &str, index: u32, address: &str) -> Result<()> {
        let starts = job.starts_with(|c: char| c.is_ascii_alphabetic());
        let ok = job.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        ensure!(starts && ok, InvalidArgument, "{job:?} is not a name for a job");
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        ensure!(
            port.is_some(),
            InvalidArgument,
            "address {address:?} of /job:{job}/task:{index} is not HOST:PORT"
        );
        let before =
            self.jobs.entry(job.to_string()).or_default().insert(index, address.to_string());
        ensure!(before.is_none(), InvalidArgument, "/job:{job}/task:{index} is listed twice");
        Ok(())
    }

    fn ensure_some(self) -> Result<ClusterSpec> {
        ensure!(
            self.jobs.values().any(|tasks| !tasks.is_empty()),
            InvalidArgument,
            "the cluster spec lists no task"
        );
        Ok(self)
    }

    /// The address of a task.
    pub fn address(&self, job: &str, task: u32) -> Result<&str> {
        let tasks = self.jobs.get(job).ok_or_else(|| {
            let known: Vec<&str> = self.jobs.keys().map(String::as_str).collect();
            err!(InvalidArgument, "no job {job:?} in the cluster; it has {}", known.join(", "))
        })?;
        tasks.get(&task).map(String::as_str).ok_or_else(|| {
            let known: Vec<String> = tasks.keys().map(u32::to_string).collect();
            let known = known.join(", ");
            err!(InvalidArgument, "no task {task} in job {job:?}; its tasks are numbered {known}")
        })
    }

    /// All tasks: job, index, address.
    pub fn tasks(&self) -> impl Iterator<Item = (&str, u32, &str)> {
        self.jobs.iter().flat_map(|(job, tasks)| tasks.iter().map(move |(i, a)| (&**job, *i, &**a)))
    }
}

/// Fails unless a peer may be `task`, such as `/job:ps/replica:0/task:0`, which others reach at
/// `address`.
pub(crate) fn ensure_role(peer: &PeerIdentity, task: &str, address: Option<&str>) -> Result<()> {
    let role = DeviceName::parse(task)
        .ok()
        .and_then(|name| Some(task_role(name.job.as_deref()?, name.task?)));
    ensure!(
        role.is_none_or(|role| peer.may_be(&role, address.unwrap_or_default())),
        PermissionDenied,
        "{peer} is not for {task}"
    );
    Ok(())
}

/// The name of a task: `/job:ps/replica:0/task:0`.
pub(crate) fn task_name(job: &str, index: u32) -> DeviceName {
    DeviceName {
        job: Some(job.to_string()),
        replica: Some(0),
        task: Some(index),
        ..DeviceName::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_notations_are_equivalent() {
        let json = ClusterSpec::parse(r#"{"ps":["a:1"],"worker":["b:2","c:3"]}"#).unwrap();
        assert_eq!(ClusterSpec::parse("ps=a:1;worker=b:2,c:3").unwrap(), json);
        assert_eq!(json.address("worker", 1).unwrap(), "c:3");
        let sparse = ClusterSpec::parse(r#"{"worker":{"37":"localhost:0"}}"#).unwrap();
        assert_eq!(sparse.address("worker", 37).unwrap(), "localhost:0");
        assert_eq!(json.tasks().count(), 3);
    }

    #[test]
    fn errors_name_the_mistake() {
        for (text, says) in [
            ("", "lists no task"),
            ("worker", "expected JOB="),
            ("worker=host", "is not HOST:PORT"),
            ("1job=h:1", "not a name"),
            ("{\"worker\": 3}", "expected addresses"),
            ("{", "not valid JSON"),
            ("@/no/such/file", "cannot read"),
        ] {
            let e = ClusterSpec::parse(text).unwrap_err();
            assert!(e.message().contains(says), "{text}: {e}");
        }
        let spec = ClusterSpec::parse("ps=a:1").unwrap();
        assert!(spec.address("worker", 0).unwrap_err().message().contains("it has ps"));
        assert!(spec.address("ps", 1).is_err());
    }
}
