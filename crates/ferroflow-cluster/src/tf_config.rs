//! `TF_CONFIG`: the environment variable in which launchers describe the cluster and the task of a
//! process.

use crate::spec::ClusterSpec;
use ferroflow_core::{Result, bail, err};
use serde_json::Value;

/// The content of `TF_CONFIG`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TfConfig {
    /// All tasks; empty if there is no cluster.
    pub cluster: ClusterSpec,
    /// `ps`, `worker`, `chief` or another job of the cluster; or `evaluator`, which is not in the
    /// cluster.
    pub job: String,
    /// The index of this task in its job.
    pub task: u32,
    /// The protocol of the tasks, if given: `grpc`, or `grpcs` with credentials.
    pub rpc_layer: Option<String>,
    /// The server whose master runs the sessions of this task, if it is not its own: an address, or
    /// a target such as `grpc://host:port`.
    pub session_master: Option<String>,
    /// The folder of checkpoints and events, if given.
    pub model_dir: Option<String>,
}

impl TfConfig {
    /// Task `task` of `job` in `cluster`.
    pub fn new(cluster: ClusterSpec, job: impl Into<String>, task: u32) -> TfConfig {
        let (rpc_layer, session_master, model_dir) = (None, None, None);
        TfConfig { cluster, job: job.into(), task, rpc_layer, session_master, model_dir }
    }

    /// Reads the environment; `None` if the variable is not set.
    pub fn from_env() -> Result<Option<TfConfig>> {
        match std::env::var("TF_CONFIG") {
            Ok(text) => {
                let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
                let parsed = TfConfig::parse_on(&text, host.trim());
                parsed.map(Some).map_err(|e| e.context("TF_CONFIG"))
            }
            Err(_) => Ok(None),
        }
    }

    /// Reads `{"cluster": {"ps": ["h:p"], …}, "task": {"type": "ps", "index": 0}}`.
    pub fn parse(text: &str) -> Result<TfConfig> {
        TfConfig::parse_on(text, "")
    }

    /// Reads the same on the host `host`. Without `task`, this is the task whose address has the
    /// name of this host, as pods of Indexed Jobs, JobSets and StatefulSets have.
    fn parse_on(text: &str, host: &str) -> Result<TfConfig> {
        let json: Value =
            serde_json::from_str(text).map_err(|e| err!(InvalidArgument, "not valid JSON: {e}"))?;
        let cluster = match &json["cluster"] {
            Value::Null => ClusterSpec::default(),
            Value::Object(jobs) if jobs.is_empty() => ClusterSpec::default(),
            cluster => ClusterSpec::from_json(cluster)?,
        };
        let text = |names: &[&str]| {
            let given = names.iter().map(|name| json[*name].as_str()).find_map(|given| given);
            given.filter(|given| !given.is_empty()).map(str::to_string)
        };
        let others = |config: TfConfig| TfConfig {
            rpc_layer: text(&["rpc_layer"]),
            session_master: text(&["session_master", "session_master_target"]),
            model_dir: text(&["model_dir"]),
            ..config
        };
        let task = &json["task"];
        if task.is_null() && !host.is_empty() && cluster.tasks().count() > 0 {
            return TfConfig::on_host(cluster, host).map(others);
        }
        let Some(job) = task["type"].as_str() else {
            bail!(InvalidArgument, "task.type is missing: which job is this?");
        };
        // Some launchers write the index as a string.
        let index = match &task["index"] {
            Value::String(text) => text.trim().parse().ok(),
            number => number.as_u64(),
        };
        let Some(task) = index.and_then(|i| u32::try_from(i).ok()) else {
            bail!(InvalidArgument, "task.index is {}, not the index of a task", task["index"]);
        };
        Ok(others(TfConfig::new(cluster, job, task)))
    }

    /// The task of the cluster that runs on a host, by its name with or without the domain.
    fn on_host(cluster: ClusterSpec, host: &str) -> Result<TfConfig> {
        let label = |name: &str| name.split('.').next().unwrap_or_default().to_string();
        let is_here = |address: &str| {
            let name = address.rsplit_once(':').map_or(address, |(name, _)| name);
            name == host
                || (name.parse::<std::net::IpAddr>().is_err() && label(name) == label(host))
        };
        let here = cluster.tasks().filter(|(_, _, address)| is_here(address));
        let here: Vec<(String, u32)> = here.map(|(job, task, _)| (job.into(), task)).collect();
        match here.as_slice() {
            [(job, task)] => Ok(TfConfig::new(cluster, job, *task)),
            others => {
                let many = if others.is_empty() { "no task" } else { "several tasks" };
                bail!(
                    InvalidArgument,
                    "there is no \"task\", and {many} of the cluster have the name of this host, {host:?}"
                )
            }
        }
    }

    /// Whether this process initializes and saves variables. It is the task of the job `chief` (or
    /// `master`, the old name), or the first worker if there is no such job.
    pub fn is_chief(&self) -> bool {
        let is_named = |job: &str| matches!(job, "chief" | "master");
        match self.cluster.tasks().any(|(job, _, _)| is_named(job)) {
            true => is_named(&self.job),
            false => {
                let first = self.cluster.tasks().find(|(job, _, _)| *job == "worker");
                first.is_some_and(|(job, index, _)| (job, index) == (self.job.as_str(), self.task))
            }
        }
    }

    /// An error unless the cluster has exactly one task that initializes and saves, and no
    /// evaluator.
    pub fn ensure_one_chief(&self) -> Result<()> {
        let is_chief = |job: &str| matches!(job, "chief" | "master");
        let chiefs = self.cluster.tasks().filter(|(job, _, _)| is_chief(job)).count();
        let workers = self.cluster.tasks().filter(|(job, _, _)| *job == "worker").count();
        if chiefs > 1 || (chiefs == 0 && workers == 0) {
            bail!(
                InvalidArgument,
                "TF_CONFIG: the cluster has {chiefs} tasks of the jobs chief and master, and \
                 {workers} workers: it must have one chief, or workers whose first is the chief"
            );
        }
        if self.cluster.tasks().any(|(job, _, _)| job == "evaluator") {
            bail!(
                InvalidArgument,
                "TF_CONFIG: the cluster has an evaluator, which is a task outside the cluster"
            );
        }
        Ok(())
    }

    /// The target of the server whose master runs the sessions of this task; `None` if it is the
    /// server of this task.
    pub fn master_target(&self) -> Result<Option<String>> {
        let layer = self.rpc_layer.as_deref().unwrap_or("grpc");
        if !matches!(layer, "grpc" | "grpcs") {
            bail!(
                Unimplemented,
                "TF_CONFIG: rpc_layer {layer:?}: tasks are reached by grpc, or by grpcs with \
                 credentials"
            );
        }
        Ok(self.session_master.as_ref().map(|master| match master.contains("://") {
            true => master.clone(),
            false => format!("{layer}://{master}"),
        }))
    }

    /// Whether this process only evaluates the checkpoints of others.
    pub fn is_evaluator(&self) -> bool {
        self.job == "evaluator"
    }

    /// An error if this process is not a task of its cluster and so cannot serve.
    pub fn ensure_serves(&self) -> Result<()> {
        let is_there = self.cluster.address(&self.job, self.task);
        match is_there {
            Err(_) if self.is_evaluator() => bail!(
                InvalidArgument,
                "TF_CONFIG: an evaluator is not a task of the cluster and needs no server"
            ),
            other => other.map(|_| ()).map_err(|e| e.context("TF_CONFIG")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(job: &str, index: &str) -> TfConfig {
        let cluster = r#"{"chief":["a:1"],"worker":{"0":"b:2","3":"c:3"},"ps":["d:4"]}"#;
        let task = format!(r#"{{"type":"{job}","index":{index}}}"#);
        TfConfig::parse(&format!(r#"{{"cluster":{cluster},"task":{task},"environment":"cloud"}}"#))
            .unwrap()
    }

    #[test]
    fn every_task_type_is_parsed() {
        for (job, index, is_chief) in [("chief", "0", true), ("worker", "\"3\"", false)] {
            let config = config(job, index);
            assert_eq!((config.job.as_str(), config.is_chief()), (job, is_chief));
            config.ensure_serves().unwrap();
        }
        assert!(!config("worker", "0").is_chief(), "there is a chief");
        let evaluator = config("evaluator", "0");
        assert!(evaluator.is_evaluator() && !evaluator.is_chief());
        for (config, says) in [
            (evaluator, "needs no server"),
            (config("other", "0"), "no job \"other\""),
            (config("worker", "1"), "no task 1"),
        ] {
            let e = config.ensure_serves().unwrap_err();
            assert!(e.message().contains(says), "{e}");
        }
    }

    #[test]
    fn the_first_worker_is_chief_without_a_chief_job() {
        let of = |job: &str, index: u32| {
            let text = r#"{"cluster":{"worker":{"2":"a:1","5":"b:1"},"ps":["c:1"]},"task":"#;
            let text = format!(r#"{text}{{"type":"{job}","index":{index}}}}}"#);
            TfConfig::parse(&text).unwrap().is_chief()
        };
        assert!(of("worker", 2));
        assert!(!of("worker", 5) && !of("ps", 0));
    }

    #[test]
    fn a_job_of_one_process_has_no_cluster() {
        let alone = TfConfig::parse(r#"{"task":{"type":"worker","index":0}}"#).unwrap();
        assert_eq!(alone.cluster.tasks().count(), 0);
        assert!(alone.ensure_serves().is_err());
    }

    #[test]
    fn a_task_without_a_number_is_found_by_the_name_of_its_host() {
        let text = r#"{"cluster":{"ps":["j-ps-0-0.j:1"],"worker":["j-worker-0-0.j:1","j-worker-0-1.j:1","10.0.0.7:1"]}}"#;
        let on = |host: &str| TfConfig::parse_on(text, host).map(|c| (c.job, c.task));
        assert_eq!(on("j-ps-0-0").unwrap(), ("ps".into(), 0));
        assert_eq!(on("j-worker-0-1.j.default.svc").unwrap(), ("worker".into(), 1));
        assert_eq!(on("10.0.0.7").unwrap(), ("worker".into(), 2));
        assert!(on("10").unwrap_err().message().contains("no task"));
        let twice = r#"{"cluster":{"ps":["a:1"],"worker":["a:2"]}}"#;
        let e = TfConfig::parse_on(twice, "a").unwrap_err();
        assert!(e.message().contains("several tasks"), "{e}");
    }

    #[test]
    fn a_cluster_has_one_chief() {
        let check = |cluster: &str| {
            let text = format!(r#"{{"cluster":{cluster},"task":{{"type":"ps","index":0}}}}"#);
            TfConfig::parse(&text).unwrap().ensure_one_chief()
        };
        check(r#"{"chief":["a:1"],"worker":["b:1"],"ps":["c:1"]}"#).unwrap();
        check(r#"{"worker":["b:1","c:1"],"ps":["c:2"]}"#).unwrap();
        for (cluster, says) in [
            (r#"{"chief":["a:1","b:1"],"ps":["c:1"]}"#, "2 tasks of the jobs chief"),
            (r#"{"chief":["a:1"],"master":["b:1"],"ps":["c:1"]}"#, "2 tasks of the jobs chief"),
            (r#"{"ps":["c:1"]}"#, "0 tasks of the jobs chief"),
            (r#"{"chief":["a:1"],"evaluator":["b:1"]}"#, "outside the cluster"),
        ] {
            let e = check(cluster).unwrap_err();
            assert!(e.message().contains(says), "{cluster}: {e}");
        }
    }

    #[test]
    fn a_session_may_use_another_master() {
        let with = |more: &str| {
            let task = r#""task":{"type":"worker","index":0}"#;
            TfConfig::parse(&format!(r#"{{"cluster":{{"worker":["a:1"]}},{task}{more}}}"#)).unwrap()
        };
        let plain = with("");
        assert_eq!((plain.master_target().unwrap(), plain.model_dir), (None, None));
        let master = with(r#","session_master_target":"b:2","rpc_layer":"grpcs","model_dir":"m""#);
        assert_eq!(master.master_target().unwrap().as_deref(), Some("grpcs://b:2"));
        assert_eq!(master.model_dir.as_deref(), Some("m"));
        let whole = with(r#","session_master":"grpc://b:2","rpc_layer":"grpc""#);
        assert_eq!(whole.master_target().unwrap().as_deref(), Some("grpc://b:2"));
        let e = with(r#","rpc_layer":"grpc+verbs""#).master_target().unwrap_err();
        assert!(e.message().contains("grpc+verbs"), "{e}");
    }

    #[test]
    fn errors_name_the_mistake() {
        for (text, says) in [
            ("nonsense", "not valid JSON"),
            (r#"{"cluster":{"ps":["a:1"]}}"#, "task.type"),
            (r#"{"cluster":{"ps":["a:1"]},"task":{"type":"ps","index":-1}}"#, "task.index is -1"),
            (r#"{"cluster":{"ps":["a"]},"task":{"type":"ps","index":0}}"#, "HOST:PORT"),
        ] {
            let e = TfConfig::parse(text).unwrap_err();
            assert!(e.message().contains(says), "{text}: {e}");
        }
    }
}
