//! The CA of a job: makes the certificates of its tasks.

use crate::credentials::Credentials;
use crate::peer::role_name;
use crate::token::{JobToken, random};
use ferroflow_core::{Result, err};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SerialNumber,
};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Certificates are valid from this much earlier on, because clocks of hosts differ.
const BACKDATED: Duration = Duration::from_secs(3600);
/// How long a CA is valid.
const CA_DAYS: u32 = 3650;

/// A CA that issues the certificates of one job.
pub struct JobAuthority {
    certificate: String,
    key: String,
    token: JobToken,
}

/// The contents of the files of a folder of credentials.
pub struct PemCredentials {
    /// `ca.crt`
    pub ca: String,
    /// `tls.crt`
    pub certificate: String,
    /// `tls.key`
    pub key: String,
    /// `token`
    pub token: String,
}

/// PEM text of a certificate and its key.
struct Issued {
    certificate: String,
    key: String,
}

impl JobAuthority {
    /// A new CA with a new job token.
    pub fn new() -> Result<JobAuthority> {
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = authority_params()?.self_signed(&key).map_err(failed)?.pem();
        Ok(JobAuthority { certificate, key: key.serialize_pem(), token: JobToken::random()? })
    }

    /// The CA in a folder, which is made if the folder has none: `ca.crt`, `ca.key` and `token`.
    pub fn in_folder(folder: &Path) -> Result<JobAuthority> {
        make_folder(folder)?;
        let read = |name: &str| {
            let path = folder.join(name);
            let text = std::fs::read_to_string(&path);
            text.map_err(|e| err!(NotFound, "cannot read {}: {e}", path.display()))
        };
        if folder.join("ca.key").exists() {
            let (certificate, key) = (read("ca.crt")?, read("ca.key")?);
            let token = JobToken::new(read("token")?.trim());
            return Ok(JobAuthority { certificate, key, token });
        }
        let authority = JobAuthority::new()?;
        write(&folder.join("ca.crt"), &authority.certificate, 0o644)?;
        write(&folder.join("ca.key"), &authority.key, 0o600)?;
        write(&folder.join("token"), &format!("{}\n", authority.token.reveal()), 0o600)?;
        Ok(authority)
    }

    /// The token of the job.
    pub fn token(&self) -> &JobToken {
        &self.token
    }

    /// Writes credentials into a folder: `ca.crt`, `tls.crt`, `tls.key` and `token`. `roles` are
    /// the tasks that the holder may be, such as `ps-0`; `hosts` are the names and addresses by
    /// which others reach it.
    pub fn write(
        &self,
        folder: &Path,
        roles: &[String],
        hosts: &[String],
        days: u32,
    ) -> Result<()> {
        let issued = self.issue(roles, hosts, days)?;
        make_folder(folder)?;
        write(&folder.join("ca.crt"), &self.certificate, 0o644)?;
        write(&folder.join("tls.key"), &issued.key, 0o600)?;
        write(&folder.join("tls.crt"), &issued.certificate, 0o644)?;
        write(&folder.join("token"), &format!("{}\n", self.token.reveal()), 0o600)
    }

    /// Credentials as text for `FERROFLOW_CREDENTIALS` of a process.
    pub fn inline(&self, roles: &[String], hosts: &[String], days: u32) -> Result<String> {
        let Issued { certificate, key } = self.issue(roles, hosts, days)?;
        Ok(Credentials::inline(&self.certificate, &certificate, &key, &self.token))
    }

    /// Credentials as PEM text, for a store of secrets.
    pub fn pem(&self, roles: &[String], hosts: &[String], days: u32) -> Result<PemCredentials> {
        let Issued { certificate, key } = self.issue(roles, hosts, days)?;
        let token = self.token.reveal().to_string();
        Ok(PemCredentials { ca: self.certificate.clone(), certificate, key, token })
    }

    /// Credentials for this process.
    pub fn credentials(
        &self,
        roles: &[String],
        hosts: &[String],
        days: u32,
    ) -> Result<Credentials> {
        let Issued { certificate, key } = self.issue(roles, hosts, days)?;
        Credentials::from_pem(&self.certificate, &certificate, &key, self.token.clone())
    }

    fn issue(&self, roles: &[String], hosts: &[String], days: u32) -> Result<Issued> {
        let mut names: Vec<String> = roles.iter().map(|role| role_name(role)).collect();
        names.extend(hosts.iter().cloned());
        let mut params = CertificateParams::new(names.clone())
            .map_err(|e| err!(InvalidArgument, "no certificate for {}: {e}", names.join(", ")))?;
        params.distinguished_name = named(names.first().map_or("client", String::as_str));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        set_times(&mut params, days)?;
        let issuer_key = KeyPair::from_pem(&self.key).map_err(failed)?;
        let issuer = Issuer::new(authority_params()?, issuer_key);
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &issuer).map_err(failed)?.pem();
        Ok(Issued { certificate, key: key.serialize_pem() })
    }
}

/// The same parameters for every CA of ours: certificates name it as their issuer, and its key
/// distinguishes it.
fn authority_params() -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new()).map_err(failed)?;
    params.distinguished_name = named("Ferroflow job CA");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_times(&mut params, CA_DAYS)?;
    Ok(params)
}

fn named(name: &str) -> DistinguishedName {
    let mut all = DistinguishedName::new();
    all.push(DnType::CommonName, name);
    all
}

fn set_times(params: &mut CertificateParams, days: u32) -> Result<()> {
    let now = SystemTime::now();
    params.not_before = (now - BACKDATED).into();
    params.not_after = (now + Duration::from_secs(u64::from(days) * 86_400)).into();
    params.serial_number = Some(SerialNumber::from_slice(&random::<16>()?));
    Ok(())
}

fn failed(e: rcgen::Error) -> ferroflow_core::Error {
    err!(Internal, "cannot make a certificate: {e}")
}

fn make_folder(folder: &Path) -> Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|e| err!(Unavailable, "cannot make {}: {e}", folder.display()))
}

/// Replaces a file at once, so that a process that reads it sees the old or the new text.
fn write(path: &Path, text: &str, mode: u32) -> Result<()> {
    let new = path.with_extension("new");
    let written = || {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(mode).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, path)
    };
    written().map_err(|e| err!(Unavailable, "cannot write {}: {e}", path.display()))
}
