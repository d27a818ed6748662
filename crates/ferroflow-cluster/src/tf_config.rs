//! The environment variable TF_CONFIG, by which launchers tell a process which task of which cluster it
//! is.

use crate::spec::ClusterSpec;
use ferroflow_core::{Result, err};

/// What TF_CONFIG says.
#[derive(Clone, Debug)]
pub struct TfConfig {
    /// All tasks; none if there is no cluster.
    pub cluster: ClusterSpec,
    /// The job of this task; it need not be in the cluster, as that of an evaluator is not.
    pub job: String,
    pub task: u32,
}

impl TfConfig {
    /// What the environment says, if it says something.
    pub fn from_env() -> Result<Option<TfConfig>> {
        match std::env::var("TF_CONFIG") {
            Ok(text) => TfConfig::parse(&text).map(Some).map_err(|e| e.context("TF_CONFIG")),
            Err(_) => Ok(None),
        }
    }

    /// Reads `{"cluster": {…}, "task": {"type": …, "index": …}}`.
    pub fn parse(text: &str) -> Result<TfConfig> {
        let json: serde_json::Value =
            serde_json::from_str(text).map_err(|e| err!(InvalidArgument, "not valid JSON: {e}"))?;
        let cluster = match &json["cluster"] {
            serde_json::Value::Null => ClusterSpec::default(),
            jobs if jobs.as_object().is_some_and(|jobs| jobs.is_empty()) => ClusterSpec::default(),
            jobs => ClusterSpec::from_json(jobs)?,
        };
        let task = &json["task"];
        let job =
            task["type"].as_str().ok_or_else(|| err!(InvalidArgument, "task.type is missing"))?;
        // Some launchers write the index as a string.
        let index = match &task["index"] {
            serde_json::Value::String(s) => s.parse().ok(),
            other => other.as_u64(),
        };
        let index = index.and_then(|i| u32::try_from(i).ok());
        let task = index.ok_or_else(|| err!(InvalidArgument, "task.index is missing"))?;
        Ok(TfConfig { cluster, job: job.to_string(), task })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_told_apart() {
        let config = TfConfig::parse(
            r#"{"cluster": {"ps": ["h:1"], "chief": ["h:2"]}, "task": {"type": "ps", "index": "0"}}"#,
        )
        .unwrap();
        assert_eq!((config.job.as_str(), config.task), ("ps", 0));
        assert_eq!(config.cluster.tasks().count(), 2);
        let alone = TfConfig::parse(r#"{"task": {"type": "worker", "index": 0}}"#).unwrap();
        assert_eq!(alone.cluster.tasks().count(), 0);
        for (text, why) in [
            ("{", "not valid JSON"),
            (r#"{"task": {"index": 0}}"#, "task.type"),
            (r#"{"task": {"type": "ps", "index": -1}}"#, "task.index"),
        ] {
            assert!(TfConfig::parse(text).unwrap_err().message().contains(why), "{text}");
        }
    }
}
