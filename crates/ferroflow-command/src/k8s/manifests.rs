//! JobSets, and runtimes of Kubeflow Trainer.

use super::job::{JOB_NAME, KubernetesJob};
use super::pods::replicated_job;
use super::wrong;
use ferroflow::Result;
use serde_json::{Value, json};

/// The name that Kubeflow Trainer requires for the Job and the container of the program.
const NODE: &str = "node";
/// The label by which Kubeflow Trainer finds the pods of the user's program.
const ANCESTOR: &str = "trainer.kubeflow.org/trainjob-ancestor-step";

/// The Secret and the JobSet.
pub fn jobset(job: &KubernetesJob) -> Result<Vec<Value>> {
    let jobs = job.roles.iter().map(|role| replicated_job(job, role, Value::Null)).collect();
    let mut all = secret(job);
    all.push(json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": job.name},
        "spec": spec(job, jobs, |name| name),
    }));
    Ok(all)
}

/// The Secret, a runtime for jobs of this shape, and one such job.
pub fn trainer(job: &KubernetesJob) -> Result<Vec<Value>> {
    // The controller sets the number and the configuration of the pods of this role.
    let Some(main) = job.roles.iter().find(|role| role.name == "worker" || role.name == "rank")
    else {
        return Err(wrong("--as trainer needs at least one worker beside the chief"));
    };
    let jobs = job.roles.iter().map(|role| {
        let labels =
            if role.name == main.name { json!({ANCESTOR: "trainer"}) } else { Value::Null };
        let mut one = replicated_job(job, role, labels);
        if role.name == main.name {
            // Containers of the trainer step have this name.
            one["name"] = json!(NODE);
            one["template"]["spec"]["template"]["spec"]["containers"][0]["name"] = json!(NODE);
        }
        one
    });
    let renamed = |name| if name == main.name { NODE } else { name };
    let mut template = spec(job, jobs.collect(), renamed);
    rename_hosts(&mut template, main.name);
    let mut all = secret(job);
    all.push(json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {
            "name": job.name,
            "labels": {"trainer.kubeflow.org/framework": "ferroflow"},
        },
        "spec": {"mlPolicy": {"numNodes": main.count}, "template": {"spec": template}},
    }));
    all.push(json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": job.name},
        "spec": {
            "runtimeRef": {"name": job.name},
            "trainer": {"image": job.image, "command": main.command, "numNodes": main.count},
        },
    }));
    Ok(all)
}

/// Puts the new name of a Job into the host names of its pods.
fn rename_hosts(value: &mut Value, main: &str) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(|v| rename_hosts(v, main)),
        Value::Array(all) => all.iter_mut().for_each(|v| rename_hosts(v, main)),
        Value::String(text) => {
            let (old, new) = (format!("{JOB_NAME}-{main}-0-"), format!("{JOB_NAME}-{NODE}-0-"));
            *text = text.replace(&old, &new);
        }
        _ => {}
    }
}

fn secret(job: &KubernetesJob) -> Vec<Value> {
    job.secret.iter().filter_map(|secret| secret.manifest.clone()).collect()
}

/// The job succeeds when its ranks, or its workers and chief, have succeeded. The controller then
/// ends the other pods.
fn spec<'a>(
    job: &'a KubernetesJob,
    jobs: Vec<Value>,
    renamed: impl Fn(&'a str) -> &'a str,
) -> Value {
    let deciding = job.roles.iter().filter(|role| role.decides);
    let deciding: Vec<&str> = deciding.map(|role| renamed(role.name)).collect();
    json!({
        "network": {"enableDNSHostnames": true, "publishNotReadyAddresses": true},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": deciding},
        "failurePolicy": {"maxRestarts": job.max_restarts},
        "replicatedJobs": jobs,
    })
}
