//! `ferroflow k8s`: writes the manifests of a job for Kubernetes.

mod chart;
mod job;
mod manifests;
mod pods;
#[cfg(test)]
mod schema;
mod secret;

use crate::run;
use ferroflow::{Code, Error, Result};
use job::KubernetesJob;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Write the manifests of a job for Kubernetes
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    Render(Box<RenderArgs>),
}

/// Write the manifests of the job that the flags of `ferroflow run` describe
///
/// The job is a JobSet: ranks with -np, or parameter servers and workers with --ps and --workers.
/// With --min-np or --max-np the ranks are elastic: they join and leave as the Job NAME-rank-0 is
/// scaled. Pods of a JobSet find each other by their host names, use TLS with the credentials of a
/// Secret, and restart when they fail. The output goes to standard output, for `kubectl apply -f
/// -`.
///
/// With --http PORT, every pod has its metrics and health at that port, readable by all pods of the
/// cluster, with the annotations by which Prometheus finds them.
///
/// With --as trainer: a ClusterTrainingRuntime of Kubeflow Trainer, and a TrainJob that uses it.
/// With --as helm: a Helm chart in the folder --out. Its values set image, number of pods and
/// restarts.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ferroflow k8s render --image registry.example.com/train:1 -np 4 -- train | kubectl apply -f -\n  \
    ferroflow k8s render --name linear --image IMAGE --checkpoints claim --ps 1 --workers 2 -- \\\n    \
    ferroflow train linear --out /checkpoints/linear\n  \
    ferroflow k8s render --as helm --out chart --image IMAGE -np 4 -- python train.py")]
pub struct RenderArgs {
    /// Image of all pods; it has the `ferroflow` command and the program
    #[arg(long, value_name = "IMAGE")]
    image: String,
    /// Name of the job; host names begin with it
    #[arg(long, value_name = "NAME", default_value = "ferroflow")]
    name: String,
    /// Kind of manifests
    #[arg(long = "as", value_enum, value_name = "KIND", default_value_t = Format::Jobset)]
    format: Format,
    /// Existing Secret with ca.crt, tls.crt, tls.key and token [default: a new one,
    /// NAME-credentials, with a new CA is part of the output]
    #[arg(long, value_name = "SECRET", conflicts_with = "insecure")]
    secret: Option<String>,
    /// PersistentVolumeClaim that all pods mount at /checkpoints
    #[arg(long, value_name = "CLAIM")]
    checkpoints: Option<String>,
    /// How often the whole job may start again after a failure
    #[arg(long, value_name = "N", default_value_t = 10)]
    max_restarts: u32,
    /// Processors of a pod, such as 4 or 500m
    #[arg(long, value_name = "CPUS")]
    cpu: Option<String>,
    /// Memory of a pod, such as 8Gi
    #[arg(long, value_name = "BYTES")]
    memory: Option<String>,
    /// NVIDIA GPUs of a pod that runs the program
    #[arg(long, value_name = "N")]
    gpus: Option<u32>,
    /// File for the manifests, or folder for a Helm chart [default: standard output]
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    #[command(flatten)]
    job: run::Args,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
enum Format {
    /// A JobSet, which needs the JobSet controller
    Jobset,
    /// A ClusterTrainingRuntime and a TrainJob, which need Kubeflow Trainer
    Trainer,
    /// A Helm chart of the JobSet
    Helm,
}

pub fn run(args: Args) -> Result<()> {
    let Verb::Render(args) = args.verb;
    let job = KubernetesJob::new(&args)?;
    match args.format {
        Format::Helm => {
            let Some(folder) = &args.out else {
                return Err(wrong("--as helm writes a folder: give it with --out"));
            };
            chart::write(&job, folder)
        }
        Format::Jobset => write(&manifests::jobset(&job)?, args.out.as_deref()),
        Format::Trainer => write(&manifests::trainer(&job)?, args.out.as_deref()),
    }
}

fn write(documents: &[Value], out: Option<&Path>) -> Result<()> {
    let text = yaml(documents)?;
    match out {
        None => {
            use std::io::Write;
            // Ignore the error: the reader may have closed it.
            let _ = std::io::stdout().write_all(text.as_bytes());
            Ok(())
        }
        Some(path) => write_file(path, &text),
    }
}

/// YAML documents, separated as kubectl expects them.
fn yaml(documents: &[Value]) -> Result<String> {
    let one = |document: &Value| {
        serde_yaml_ng::to_string(document)
            .map_err(|e| Error::new(Code::Internal, format!("cannot write YAML: {e}")))
    };
    let documents: Vec<String> = documents.iter().map(one).collect::<Result<_>>()?;
    Ok(documents.join("---\n"))
}

/// Writes a file that only its owner can read: it may have secrets.
fn write_file(path: &Path, text: &str) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::File::options();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|e| Error::new(Code::Unavailable, format!("{}: {e}", path.display())))
}

fn wrong(text: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: RenderArgs,
    }

    pub(super) fn job(words: &str) -> Result<KubernetesJob> {
        let words = words.split(' ').filter(|word| !word.is_empty());
        let words = ["render", "--image", "i:1"].into_iter().chain(words);
        KubernetesJob::new(&Line::try_parse_from(words).unwrap().args)
    }

    /// The keys of the schemas are those of the custom resource definitions; unknown fields are
    /// errors.
    fn check(document: &Value) {
        let schema = match document["kind"].as_str().unwrap() {
            "JobSet" => include_str!("../tests/data/kubernetes/jobset.json"),
            "ClusterTrainingRuntime" => {
                include_str!("../tests/data/kubernetes/cluster_training_runtime.json")
            }
            "TrainJob" => include_str!("../tests/data/kubernetes/train_job.json"),
            "Secret" => include_str!("../tests/data/kubernetes/secret.json"),
            other => panic!("no schema of {other}"),
        };
        let schema: Value = serde_json::from_str(schema).unwrap();
        let errors = schema::mistakes(document, &schema);
        assert!(errors.is_empty(), "{errors:#?}\n{document:#}");
    }

    const JOBS: [&str; 8] = [
        "-n 4 -- train --fast",
        "-n 2 --insecure -x A=b --cpu 500m --memory 4Gi --gpus 1 -- train",
        "-n 2 --secret mine --checkpoints claim --port 5000 --max-restarts 3 -- train",
        "--ps 2 --workers 3 -- train",
        "--ps 1 --workers 2 --chief --evaluator --checkpoints claim -- train",
        "--ps 1 --workers 1 --serve none --secret mine -- train",
        "--ps 1 --workers 2 --http 9100 -- train",
        "-n 2 --http 9100 --transport tcp -- train",
    ];

    #[test]
    fn every_manifest_fits_the_schema_of_its_kind() {
        for words in JOBS {
            let job = job(words).unwrap();
            let all = [manifests::jobset(&job).unwrap(), manifests::trainer(&job).unwrap()];
            all.concat().iter().for_each(check);
        }
    }

    #[test]
    fn an_elastic_job_has_a_driver_and_ranks_that_restart_alone() {
        let job = job("-n 2 --min-np 1 --max-np 4 --port 5000 -- train").unwrap();
        let documents = manifests::jobset(&job).unwrap();
        documents.iter().for_each(check);
        let jobs = &documents[1]["spec"]["replicatedJobs"];
        let container =
            |i: usize| &jobs[i]["template"]["spec"]["template"]["spec"]["containers"][0];
        let command = container(0)["command"].to_string();
        assert!(
            command.contains(r#""driver","--np","2","--min-np","1","--max-np","4""#),
            "{command}"
        );
        assert!(container(1)["env"].to_string().contains("-driver-0-0."), "{}", container(1));
        assert_eq!(jobs[1]["template"]["spec"]["backoffLimit"], 100);
        assert_eq!(documents[1]["spec"]["successPolicy"]["targetReplicatedJobs"][0], "rank");
    }

    #[test]
    fn metrics_have_a_port_and_annotations() {
        let job = job("-n 2 --min-np 1 --http 9100 --transport tcp -- train").unwrap();
        let documents = manifests::jobset(&job).unwrap();
        documents.iter().for_each(check);
        let jobs = &documents[1]["spec"]["replicatedJobs"];
        let pod = |i: usize| &jobs[i]["template"]["spec"]["template"];
        assert!(pod(0)["metadata"].is_null(), "a driver has no metrics");
        assert_eq!(pod(1)["metadata"]["annotations"]["prometheus.io/port"], "9100");
        let rank = &pod(1)["spec"]["containers"][0];
        assert_eq!(rank["readinessProbe"]["httpGet"]["port"], "http");
        let env = rank["env"].to_string();
        for variable in [
            r#"{"name":"FERROFLOW_HTTP","value":"0.0.0.0:9100"}"#,
            r#"{"name":"FERROFLOW_HTTP_OPEN","value":"1"}"#,
            r#"{"name":"FERROFLOW_TRANSPORT","value":"tcp"}"#,
        ] {
            assert!(env.contains(variable), "{env}");
        }
    }

    #[test]
    fn the_schemas_find_a_misspelled_field() {
        let mut document = manifests::jobset(&job(JOBS[3]).unwrap()).unwrap().pop().unwrap();
        document["spec"]["succesPolicy"] = document["spec"]["successPolicy"].take();
        assert!(std::panic::catch_unwind(|| check(&document)).is_err());
    }

    /// Write them again with `UPDATE_DOCS=1 cargo test -p ferroflow-command k8s`.
    #[test]
    fn the_book_shows_what_render_writes() {
        let linear = "--name linear --secret linear --checkpoints claim --ps 1 --workers 2 -- \
                      ferroflow train linear --out /checkpoints/linear";
        for (file, words) in [
            ("all-reduce.yaml", "--name train --secret train -n 4 -- train"),
            ("ps-and-workers.yaml", linear),
        ] {
            let mut job = job(words).unwrap();
            job.image = format!("registry.example.com/{}:1", job.name);
            let fresh = yaml(&manifests::jobset(&job).unwrap()).unwrap();
            let path =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/start/kubernetes");
            let path = path.join(file);
            if std::env::var_os("UPDATE_DOCS").is_some() {
                std::fs::write(&path, &fresh).unwrap();
            }
            let written = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(
                written == fresh,
                "{file} is stale: UPDATE_DOCS=1 cargo test -p ferroflow-command k8s"
            );
        }
    }

    #[test]
    fn yaml_says_the_same_as_the_documents() {
        for words in JOBS {
            let documents = manifests::jobset(&job(words).unwrap()).unwrap();
            let text = yaml(&documents).unwrap();
            let read: Vec<Value> =
                text.split("\n---\n").map(|one| serde_yaml_ng::from_str(one).unwrap()).collect();
            assert_eq!(read, documents);
        }
    }

    #[test]
    fn flags_that_mean_nothing_on_kubernetes_are_named() {
        for (words, flag) in [
            ("-n 2 -H a:2 -- train", "-H"),
            ("-n 2 --rsh ssh -- train", "--rsh"),
            ("-n 2 --min-np 3 -- train", "--min-np"),
            ("--workers 2 --max-np 3 -- train", "--max-np"),
            ("-n 2 --max-np 3 --as helm -- train", "--as"),
            ("-n 2 --host-discovery-script x -- train", "--host-discovery-script"),
            ("-n 2 --servers 1 -- train", "--servers"),
            ("--workers 2 --serve all -- train", "--serve all"),
            ("--workers 2 --client tensorflow -- train", "--client"),
            ("-n 2 --dashboard -- train", "--dashboard"),
            ("-n 2 --max-failures 9 -- train", "--max-failures"),
            ("-n 2 --transport pigeon -- train", "pigeon"),
            ("--name A_b -n 2 -- train", "--name"),
            ("-n 2 --memory 8Gib -- train", "--memory"),
            ("-n 2 --cpu 4x -- train", "--cpu"),
            ("-n 2 --cpu m -- train", "--cpu"),
        ] {
            let e = job(words).map(|_| ()).unwrap_err();
            assert!(e.message().contains(flag), "{words}: {e}");
        }
    }
}
