//! The flags of commands that need credentials, and `ferroflow certs`, which makes them.

use crate::say::say;
use ferroflow::cluster::{ClusterSpec, Credentials, IpRange, JobAuthority, Trust};
use ferroflow::{Code, Error, Result};
use std::path::{Path, PathBuf};

/// The credentials of a process.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct CredentialArgs {
    /// Folder with ca.crt, tls.crt, tls.key and, if there is one, token, as `ferroflow certs` and
    /// Kubernetes make it [default: $FERROFLOW_CREDENTIALS]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["cert", "key", "ca", "token_file"])]
    credentials: Option<PathBuf>,
    /// Certificate in PEM format, instead of --credentials
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// Private key of --cert [default: tls.key beside it]
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// CA certificate of the job [default: ca.crt beside --cert]
    #[arg(long, value_name = "FILE", requires = "cert")]
    ca: Option<PathBuf>,
    /// File with the job token [default: token beside --cert, if it exists]
    #[arg(long, value_name = "FILE", requires = "cert")]
    token_file: Option<PathBuf>,
}

impl CredentialArgs {
    /// The file with the private key, if the credentials are files.
    pub fn key_file(&self) -> Option<PathBuf> {
        let folder = self.credentials.clone().or_else(|| {
            let given = std::env::var("FERROFLOW_CREDENTIALS").ok()?;
            Some(PathBuf::from(given)).filter(|folder| folder.is_dir())
        });
        let beside = |certificate: &PathBuf| certificate.with_file_name("tls.key");
        folder
            .filter(|_| self.cert.is_none())
            .map(|folder| folder.join("tls.key"))
            .or_else(|| self.key.clone())
            .or_else(|| self.cert.as_ref().map(beside))
    }

    /// The credentials of the flags, or of the environment.
    pub fn load(&self) -> Result<Option<Credentials>> {
        if let Some(folder) = &self.credentials {
            return Credentials::from_folder(folder).map(Some);
        }
        let Some(certificate) = &self.cert else { return Ok(Trust::from_env()?.credentials) };
        let path = |given: &Option<PathBuf>| given.clone();
        let (key, ca, token) = (path(&self.key), path(&self.ca), path(&self.token_file));
        Credentials::from_files(certificate, key.as_deref(), ca.as_deref(), token.as_deref())
            .map(Some)
    }
}

/// Which peers a server lets in.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct TrustArgs {
    #[command(flatten)]
    credentials: CredentialArgs,
    /// Let every host that reaches the server in, without credentials [default:
    /// $FERROFLOW_INSECURE]
    #[arg(long)]
    insecure: bool,
    /// Let all users of this host in, not only the user that runs the server
    #[arg(long)]
    any_local_user: bool,
    /// Addresses of peers without TLS, such as TensorFlow tasks: 10.0.0.0/8. Repeatable
    #[arg(long, value_name = "CIDR", value_delimiter = ',')]
    insecure_peers: Vec<IpRange>,
    /// With credentials: let your own processes on this host in without TLS
    #[arg(long)]
    plain_on_this_host: bool,
    /// Let every caller close sessions and clear containers of others, as TensorFlow does [default
    /// if only one user of this host is let in]
    #[arg(long)]
    allow_foreign_reset: bool,
}

impl TrustArgs {
    pub fn trust(&self) -> Result<Trust> {
        let environment = Trust::from_env()?;
        Ok(Trust {
            credentials: self.credentials.load()?,
            is_insecure: self.insecure || environment.is_insecure,
            any_local_user: self.any_local_user,
            insecure_peers: self.insecure_peers.clone(),
            plain_on_this_host: self.plain_on_this_host,
            allow_foreign_reset: self.allow_foreign_reset.then_some(true),
            ..Trust::default()
        })
    }
}

/// Make the CA, the certificates and the token of a job
///
/// Writes the CA to DIR (ca.crt, ca.key, token) and a folder of credentials for each name: ca.crt,
/// tls.crt, tls.key and token. A name is the task or rank that its holder may be; the holder of
/// `job` may be any. Give each process its own folder, with --credentials or
/// FERROFLOW_CREDENTIALS. Run the command again to renew certificates or to add names: the CA
/// stays, and running servers read their new files within seconds. Keep ca.key secret.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ferroflow certs --out certs --cluster 'ps=hosta:2222;worker=hostb:2222' client\n  \
    ferroflow certs --out certs rank-0=hosta rank-1=hostb,10.0.0.2")]
pub struct Args {
    /// Folder of the CA and of the credentials
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Cluster whose tasks get credentials, such as ps-0 and worker-1: a specification as for
    /// `ferroflow server`
    #[arg(long, value_name = "SPEC")]
    cluster: Option<String>,
    /// Days until the certificates expire
    #[arg(long, value_name = "N", default_value_t = 365)]
    days: u32,
    /// More names, with the hosts and addresses by which others reach them
    #[arg(value_name = "NAME[=HOST,…]")]
    names: Vec<String>,
}

/// A name that gets credentials, and the hosts of its holder.
type Holder = (String, Vec<String>);

pub fn run(args: Args) -> Result<()> {
    let holders = holders(&args)?;
    let authority = JobAuthority::in_folder(&args.out)?;
    for (name, hosts) in &holders {
        let folder = args.out.join(name);
        authority.write(&folder, &roles(name), hosts, args.days)?;
        let hosts = if hosts.is_empty() { "a client".into() } else { hosts.join(", ") };
        say!("{}: {hosts}", folder.display());
    }
    Ok(())
}

/// The roles of the holder of a name.
fn roles(name: &str) -> Vec<String> {
    match name {
        // Process groups of torch number their ranks themselves, so each rank is a member too.
        _ if name.starts_with("rank-") => vec![name.into(), "member".into()],
        _ => vec![name.into()],
    }
}

fn holders(args: &Args) -> Result<Vec<Holder>> {
    let mut holders: Vec<Holder> = Vec::new();
    if let Some(spec) = &args.cluster {
        let spec = ClusterSpec::parse(spec)?;
        for (job, index, address) in spec.tasks() {
            let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
            let host = host.trim_matches(['[', ']']).to_string();
            holders.push((format!("{job}-{index}").to_ascii_lowercase(), vec![host]));
        }
    }
    for word in &args.names {
        let (name, hosts) = word.split_once('=').unwrap_or((word, ""));
        let hosts = hosts.split(',').filter(|h| !h.is_empty()).map(str::to_string).collect();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
            let text = format!("{name:?} is not a name: use letters, digits, '-', '_' and '.'");
            return Err(Error::new(Code::InvalidArgument, text));
        }
        holders.push((name.to_ascii_lowercase(), hosts));
    }
    if holders.is_empty() {
        let text = "no names: give --cluster SPEC, or names such as worker-0=hosta and client";
        return Err(Error::new(Code::InvalidArgument, text));
    }
    let is_ca = |name: &str| matches!(name, "ca.crt" | "ca.key" | "token");
    match holders.iter().find(|(name, _)| is_ca(name)) {
        Some((name, _)) => Err(Error::new(
            Code::InvalidArgument,
            format!("{} is a file of the CA", Path::new(&args.out).join(name).display()),
        )),
        None => Ok(holders),
    }
}
