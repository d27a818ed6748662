//! Jobs and pods: what all manifests have in common.

use super::job::{CREDENTIALS, HEALTH_PORT, KubernetesJob, PodRole};
use serde_json::{Value, json};

/// The unprivileged user of the pods.
const USER: u32 = 65_532;
/// The time that a pod has to write a checkpoint after SIGTERM.
const GRACE_S: u32 = 60;
/// How often a single pod may fail. Losing its node does not count.
const RETRIES: u32 = 100;

/// A Job of a JobSet: the pods of one role.
pub fn replicated_job(job: &KubernetesJob, role: &PodRole, labels: Value) -> Value {
    let (restart, retries) = match role.restarts_alone {
        true => ("OnFailure", RETRIES),
        false => ("Never", 0),
    };
    let mut pod = json!({
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": GRACE_S,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container(job, role)],
        "volumes": volumes(job),
    });
    if !role.runs_program {
        // A server needs no rights on the cluster.
        pod["automountServiceAccountToken"] = json!(false);
    }
    let mut template = json!({"spec": pod});
    if let Some(port) = metrics_port(job, role) {
        // By these, a Prometheus with the usual configuration of Kubernetes finds the pods.
        let annotations = json!({
            "prometheus.io/scrape": "true",
            "prometheus.io/port": port.to_string(),
            "prometheus.io/path": "/metrics",
        });
        template["metadata"] = json!({"annotations": annotations});
    }
    let mut one = json!({
        "name": role.name,
        "replicas": 1,
        "template": {
            "spec": {
                "completionMode": "Indexed",
                "completions": role.count,
                "parallelism": role.count,
                "backoffLimit": retries,
                "template": template,
            },
        },
    });
    if !labels.is_null() {
        one["template"]["metadata"] = json!({"labels": labels});
    }
    one
}

/// The port at which the pods of a role have metrics, if there is one.
fn metrics_port(job: &KubernetesJob, role: &PodRole) -> Option<u16> {
    job.http.filter(|_| role.has_metrics)
}

fn container(job: &KubernetesJob, role: &PodRole) -> Value {
    let mut ports = vec![json!({"name": "ferroflow", "containerPort": role.port})];
    if role.has_health {
        ports.push(json!({"name": "health", "containerPort": HEALTH_PORT}));
    }
    if let Some(port) = metrics_port(job, role) {
        ports.push(json!({"name": "http", "containerPort": port}));
    }
    let mut container = json!({
        "name": role.name,
        "image": job.image,
        "command": role.command,
        "env": variables(job, role),
        "ports": ports,
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts(job),
    });
    if let Some(resources) = resources(job, role) {
        container["resources"] = resources;
    }
    let ready =
        |port: &str| json!({"httpGet": {"path": "/readyz", "port": port}, "periodSeconds": 5});
    if role.has_health {
        // Allows two minutes for the start, then half a minute of silence before a restart.
        container["startupProbe"] =
            json!({"grpc": {"port": HEALTH_PORT}, "periodSeconds": 2, "failureThreshold": 60});
        container["readinessProbe"] = ready("health");
        let alive = json!({"path": "/healthz", "port": "health"});
        container["livenessProbe"] =
            json!({"httpGet": alive, "periodSeconds": 10, "failureThreshold": 3});
    } else if metrics_port(job, role).is_some() {
        // Ready once the program has a server or is a rank. This is no liveness probe: only the
        // program knows when that happens, and the job notices a process that has died.
        container["readinessProbe"] = ready("http");
    }
    container
}

/// The variables of a pod. The number of the task is first, because later variables refer to it.
fn variables(job: &KubernetesJob, role: &PodRole) -> Vec<Value> {
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let index = "metadata.annotations['batch.kubernetes.io/job-completion-index']";
    let mut all = vec![
        field("FERROFLOW_JOB_NAME", "metadata.labels['jobset.sigs.k8s.io/jobset-name']"),
        field(role.place, index),
    ];
    all.extend(role.env.iter().cloned());
    if job.secret.is_some() {
        all.push(json!({"name": "FERROFLOW_CREDENTIALS", "value": CREDENTIALS}));
    }
    if job.is_insecure {
        all.push(json!({"name": "FERROFLOW_INSECURE", "value": "1"}));
    }
    if role.has_health {
        let address = format!("0.0.0.0:{HEALTH_PORT}");
        all.push(json!({"name": "FERROFLOW_HEALTH", "value": address}));
    }
    if let Some(port) = metrics_port(job, role) {
        all.push(json!({"name": "FERROFLOW_HTTP", "value": format!("0.0.0.0:{port}")}));
        all.push(json!({"name": "FERROFLOW_HTTP_OPEN", "value": "1"}));
    }
    all.extend(job.env.iter().map(|(name, value)| json!({"name": name, "value": value})));
    all
}

fn mounts(job: &KubernetesJob) -> Vec<Value> {
    let mut all = vec![json!({"name": "tmp", "mountPath": "/tmp"})];
    if job.secret.is_some() {
        let mount = json!({"name": "credentials", "mountPath": CREDENTIALS, "readOnly": true});
        all.push(mount);
    }
    if job.checkpoints.is_some() {
        all.push(json!({"name": "checkpoints", "mountPath": "/checkpoints"}));
    }
    all
}

fn volumes(job: &KubernetesJob) -> Vec<Value> {
    let mut all = vec![json!({"name": "tmp", "emptyDir": {}})];
    if let Some(secret) = &job.secret {
        // Readable by the group of the pod.
        let source = json!({"secretName": secret.name, "defaultMode": 0o440});
        all.push(json!({"name": "credentials", "secret": source}));
    }
    if let Some(claim) = &job.checkpoints {
        let source = json!({"claimName": claim});
        all.push(json!({"name": "checkpoints", "persistentVolumeClaim": source}));
    }
    all
}

fn resources(job: &KubernetesJob, role: &PodRole) -> Option<Value> {
    let mut requests = serde_json::Map::new();
    for (name, given) in [("cpu", &job.cpu), ("memory", &job.memory)] {
        requests.extend(given.iter().map(|value| (name.to_string(), json!(value))));
    }
    let mut limits = serde_json::Map::new();
    limits.extend(job.memory.iter().map(|value| ("memory".to_string(), json!(value))));
    if let (Some(gpus), true) = (job.gpus, role.runs_program) {
        limits.insert("nvidia.com/gpu".into(), json!(gpus));
    }
    (!requests.is_empty() || !limits.is_empty())
        .then(|| json!({"requests": requests, "limits": limits}))
}
