//! The token of a job and, when the job leaves this host, the certificates of its processes.

use super::hosts::Host;
use ferroflow::Result;
use ferroflow::cluster::{Credentials, JobAuthority, Trust};
use ferroflow_identity::JobToken;
use std::net::ToSocketAddrs;

/// How long the certificates of a job are valid. New connections fail afterwards.
const DAYS: u32 = 365;

/// The secrets of one job. Only the launcher and the processes of the job have them in memory.
pub struct JobSecrets {
    token: JobToken,
    /// The CA of a job that leaves this host.
    authority: Option<JobAuthority>,
    /// Whether processes on other hosts work without certificates.
    is_insecure: bool,
}

impl JobSecrets {
    /// The secrets of a job. `leaves`: the job leaves this host; `insecure`: without certificates.
    pub fn new(leaves: bool, insecure: bool) -> Result<JobSecrets> {
        let authority = (leaves && !insecure).then(JobAuthority::new).transpose()?;
        let token = match &authority {
            Some(authority) => authority.token().clone(),
            None => JobToken::random()?,
        };
        Ok(JobSecrets { token, authority, is_insecure: leaves && insecure })
    }

    pub fn token(&self) -> &JobToken {
        &self.token
    }

    pub fn has_certificates(&self) -> bool {
        self.authority.is_some()
    }

    /// The variables of a process on `host` that may be each of `roles`. Other processes reach it
    /// at `address`.
    pub fn env(
        &self,
        roles: &[String],
        host: &Host,
        address: &str,
    ) -> Result<Vec<(String, String)>> {
        let mut env = Vec::new();
        if let Some(authority) = &self.authority {
            // Groups of some of the ranks have numbers of their own, so all ranks are members too.
            let roles = [roles, &["member".to_string()]].concat();
            let credentials = authority.inline(&roles, &names(host, address), DAYS)?;
            env.push(("FERROFLOW_CREDENTIALS".into(), credentials));
        }
        if self.is_insecure {
            env.push(("FERROFLOW_INSECURE".into(), "1".into()));
        }
        Ok(env)
    }

    /// The launcher's own trust, as the process `role` at `address`.
    pub fn trust(&self, role: &str, address: &str) -> Result<Trust> {
        let credentials = match &self.authority {
            Some(authority) => {
                let here = Host::new("localhost", 1);
                Some(authority.credentials(&[role.into()], &names(&here, address), DAYS)?)
            }
            // Processes on this host inherit the launcher's credentials, so the variable stays.
            None => {
                let own = std::env::var("FERROFLOW_CREDENTIALS").ok().filter(|v| !v.is_empty());
                own.as_deref().map(Credentials::parse).transpose()?
            }
        };
        Ok(Trust { credentials, is_insecure: self.is_insecure, ..Trust::default() })
    }
}

/// The names and addresses by which other processes may reach a host.
fn names(host: &Host, address: &str) -> Vec<String> {
    let mut names = vec![address.to_string(), host.name.clone()];
    let found = (address, 0).to_socket_addrs().into_iter().flatten();
    names.extend(found.map(|found| found.ip().to_string()));
    if host.is_here() {
        names.extend(["localhost", "127.0.0.1", "::1"].map(String::from));
    }
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_on_one_host_needs_a_token_alone() {
        let secrets = JobSecrets::new(false, false).unwrap();
        assert_eq!(secrets.token().reveal().len(), 32);
        let here = Host::new("localhost", 1);
        assert_eq!(secrets.env(&["rank-0".into()], &here, "127.0.0.1").unwrap(), []);
    }

    #[test]
    fn processes_of_several_hosts_get_certificates_unless_told_otherwise() {
        let far = Host::new("10.0.0.9", 1);
        let secrets = JobSecrets::new(true, false).unwrap();
        let env = secrets.env(&["rank-1".into()], &far, "10.0.0.9").unwrap();
        assert_eq!(env.len(), 1);
        let credentials = Credentials::parse(&env[0].1).unwrap();
        assert_eq!(credentials.token().reveal(), secrets.token().reveal());
        let secrets = JobSecrets::new(true, true).unwrap();
        let env = secrets.env(&["rank-1".into()], &far, "10.0.0.9").unwrap();
        assert_eq!(env, [("FERROFLOW_INSECURE".to_string(), "1".to_string())]);
    }
}
