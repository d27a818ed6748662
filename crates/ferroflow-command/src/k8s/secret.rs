//! The Secret with the credentials of a job.

use super::job::PodRole;
use ferroflow::Result;
use ferroflow::cluster::JobAuthority;
use ferroflow_identity::{rank_role, task_role};
use serde_json::{Value, json};

/// How long the certificate is valid.
const DAYS: u32 = 365;

/// A Secret of the cluster.
pub struct Secret {
    pub name: String,
    /// Its manifest, unless it exists already.
    pub manifest: Option<Value>,
}

impl Secret {
    pub fn existing(name: &str) -> Secret {
        Secret { name: name.into(), manifest: None }
    }

    /// A new CA, and one certificate for all tasks of the job. It names roles instead of hosts, so
    /// that it is valid under every name of the job and after pods have moved.
    pub fn new(job: &str, roles: &[PodRole]) -> Result<Secret> {
        let name = format!("{job}-credentials");
        let mut tasks = vec!["member".to_string()];
        for role in roles {
            let of = |i: usize| match role.name {
                "rank" => rank_role(i),
                "driver" => "driver".into(),
                job => task_role(job, i as u32),
            };
            tasks.extend((0..role.most).map(of));
        }
        let pem = JobAuthority::new()?.pem(&tasks, &[], DAYS)?;
        let manifest = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name},
            "type": "Opaque",
            "stringData": {
                "ca.crt": pem.ca,
                "tls.crt": pem.certificate,
                "tls.key": pem.key,
                "token": pem.token,
            },
        });
        Ok(Secret { name, manifest: Some(manifest) })
    }
}
