//! The tasks of a session, and their names in it.

use crate::messages::{ClusterDescription, JobDescription};
use crate::spec::{ClusterSpec, task_name};
use crate::wire::SessionConfig;
use ferroflow_core::{DeviceName, Result, bail, ensure};

/// The cluster of a session: the server's own, or one that the client describes.
pub(super) struct Members {
    pub cluster: ClusterSpec,
    /// The name of the master's task.
    pub job: String,
    pub index: u32,
    /// The client's description, if there is one; passed on to the other tasks.
    pub described: Option<ClusterDescription>,
}

impl Members {
    /// The members of a session that a client opens on `own`, at `target`.
    pub fn of(own: &Members, config: &SessionConfig, target: &str) -> Result<Members> {
        let Some(described) = config.cluster.clone() else {
            return Ok(Members {
                cluster: own.cluster.clone(),
                job: own.job.clone(),
                index: own.index,
                described: None,
            });
        };
        let address = target.split_once("://").map_or(target, |(_, address)| address);
        let cluster = ClusterSpec::from_tasks(described.tasks())?;
        let at = |address: &str| -> Vec<_> {
            cluster.tasks().filter(|(_, _, at)| *at == address).collect()
        };
        let mut here = at(address);
        if here.is_empty() {
            // The client knows this task by another address, such as that of a proxy.
            here = at(own.cluster.address(&own.job, own.index)?);
        }
        let Some(&(job, index, _)) = here.first() else {
            bail!(
                InvalidArgument,
                "The master (current machine) is not included in the provided cluster_def. {}",
                text(&described)
            );
        };
        ensure!(
            here.len() == 1,
            InvalidArgument,
            "Found multiple matching tasks that correspond to to the master. Master target: \
             '{target}'. ClusterDef: {}",
            text(&described)
        );
        ensure!(
            (job, index) != (own.job.as_str(), own.index),
            InvalidArgument,
            "The ClusterSpec names the job and task index to be the same names that were provided \
             when the server booted. This is currently not allowed. Job: {job}, task index: {index}"
        );
        let job = job.to_string();
        Ok(Members { cluster, job, index, described: Some(described) })
    }

    /// The master's own task.
    pub fn own(&self) -> DeviceName {
        task_name(&self.job, self.index)
    }

    /// The other tasks that `filters` let through, with their addresses. No filter lets all
    /// through.
    pub fn others(&self, filters: &[String]) -> Result<Vec<(DeviceName, &str)>> {
        let filters: Vec<DeviceName> =
            filters.iter().map(|f| DeviceName::parse(f)).collect::<Result<_>>()?;
        let passes =
            |task: &DeviceName| filters.is_empty() || filters.iter().any(|f| f.is_compatible(task));
        let own = self.own();
        let tasks = self.cluster.tasks();
        let named = tasks.map(|(job, index, address)| (task_name(job, index), address));
        Ok(named.filter(|(task, _)| *task != own && passes(task)).collect())
    }
}

fn text(cluster: &ClusterDescription) -> String {
    let task = |(index, address): (&i32, &String)| {
        format!("tasks {{ key: {index} value: \"{address}\" }} ")
    };
    let job = |job: &JobDescription| {
        let tasks: String = job.tasks.iter().map(task).collect();
        format!("job {{ name: \"{}\" {tasks}}}", job.name)
    };
    cluster.jobs.iter().map(job).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Members {
        Members {
            cluster: ClusterSpec::parse("ps=a:1,b:2;worker=c:3,d:4").unwrap(),
            job: "worker".into(),
            index: 0,
            described: None,
        }
    }

    fn others(filters: &[&str]) -> Vec<String> {
        let filters: Vec<String> = filters.iter().map(|f| f.to_string()).collect();
        let own = own();
        own.others(&filters).unwrap().iter().map(|(_, address)| address.to_string()).collect()
    }

    #[test]
    fn filters_leave_the_masters_own_task() {
        assert_eq!(others(&[]), ["a:1", "b:2", "d:4"]);
        assert_eq!(others(&["/job:ps"]), ["a:1", "b:2"]);
        assert_eq!(others(&["/job:ps/task:1", "/job:worker/task:0"]), ["b:2"]);
        assert!(own().others(&["nonsense".into()]).is_err());
    }

    #[test]
    fn a_client_may_describe_another_cluster() {
        let cluster = |tasks: &[(&str, &str)]| {
            let job = |(name, address): &(&str, &str)| JobDescription {
                name: name.to_string(),
                tasks: [(0, address.to_string())].into(),
            };
            let mut config = SessionConfig::default();
            config.cluster = Some(ClusterDescription { jobs: tasks.iter().map(job).collect() });
            config
        };
        let of = |tasks: &[(&str, &str)]| Members::of(&own(), &cluster(tasks), "grpc://c:3");
        let members = of(&[("x", "c:3"), ("y", "a:1")]).unwrap();
        assert_eq!(members.own().to_string(), "/job:x/replica:0/task:0");
        assert_eq!(members.others(&[]).unwrap()[0].1, "a:1");
        let by_proxy = cluster(&[("x", "c:3"), ("y", "a:1")]);
        let members = Members::of(&own(), &by_proxy, "grpc://127.0.0.1:4").unwrap();
        assert_eq!(members.own().to_string(), "/job:x/replica:0/task:0", "through a proxy");
        let says = |tasks: &[(&str, &str)]| of(tasks).err().unwrap().message().to_string();
        assert!(says(&[("x", "a:1")]).contains("is not included"));
        assert!(says(&[("x", "c:3"), ("y", "c:3")]).contains("multiple matching"));
        assert!(says(&[("worker", "c:3")]).contains("same names"));
    }
}
