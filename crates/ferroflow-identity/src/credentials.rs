//! The credentials of a process: a CA, a certificate with its key, and a job token.

use crate::token::JobToken;
use crate::verify::TlsConfigs;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ferroflow_core::{Result, bail, ensure, err};
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How often files are checked for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The prefix of credentials that are given as text instead of a path.
const INLINE: &str = "data:";

/// A CA, a certificate with its key, and possibly a job token. Clones share one state. Files are
/// read again when they change, so that certificates can be renewed without a restart.
#[derive(Clone)]
pub struct Credentials(Arc<Shared>);

struct Shared {
    files: Option<Files>,
    loaded: Mutex<Loaded>,
}

/// The files of credentials.
#[derive(Clone, Debug, PartialEq)]
struct Files {
    ca: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
    token: Option<PathBuf>,
}

#[derive(Clone)]
struct Loaded {
    tls: Arc<TlsConfigs>,
    token: JobToken,
    versions: Vec<Option<Version>>,
    checked: Instant,
}

/// Properties that change when a file is replaced.
type Version = (SystemTime, u64, u64);

impl Credentials {
    /// Reads `ca.crt`, `tls.crt`, `tls.key` and, if it exists, `token` of a folder. `ferroflow
    /// certs` and Kubernetes (cert-manager, secrets of type kubernetes.io/tls) use these names.
    pub fn from_folder(folder: &Path) -> Result<Credentials> {
        let token = folder.join("token");
        Credentials::watching(Files {
            ca: folder.join("ca.crt"),
            certificate: folder.join("tls.crt"),
            key: folder.join("tls.key"),
            token: token.exists().then_some(token),
        })
    }

    /// Reads single files. Without `ca` or `key`, `ca.crt` and `tls.key` beside the certificate are
    /// read.
    pub fn from_files(
        certificate: &Path,
        key: Option<&Path>,
        ca: Option<&Path>,
        token: Option<&Path>,
    ) -> Result<Credentials> {
        if certificate.is_dir() {
            return Credentials::from_folder(certificate);
        }
        let folder = certificate.parent().unwrap_or(Path::new("."));
        let beside = |name: &str| folder.join(name);
        let found = beside("token");
        Credentials::watching(Files {
            ca: ca.map_or_else(|| beside("ca.crt"), Path::to_path_buf),
            certificate: certificate.to_path_buf(),
            key: key.map_or_else(|| beside("tls.key"), Path::to_path_buf),
            token: token.map(Path::to_path_buf).or(found.exists().then_some(found)),
        })
    }

    /// Reads the value of `FERROFLOW_CREDENTIALS`: a folder, or the text of `Credentials::inline`.
    pub fn parse(text: &str) -> Result<Credentials> {
        let Some(data) = text.strip_prefix(INLINE) else {
            return Credentials::from_folder(Path::new(text));
        };
        let malformed = || err!(InvalidArgument, "FERROFLOW_CREDENTIALS is malformed");
        let pem = STANDARD.decode(data).map_err(|_| malformed())?;
        let pem = String::from_utf8(pem).map_err(|_| malformed())?;
        let mut parts = pem.split('\0');
        let mut part = || parts.next().ok_or_else(malformed);
        let (ca, certificate, key, token) = (part()?, part()?, part()?, part()?);
        Credentials::from_pem(ca, certificate, key, JobToken::new(token))
    }

    /// Credentials as one line of text, for a process that has no files.
    pub(crate) fn inline(ca: &str, certificate: &str, key: &str, token: &JobToken) -> String {
        let pem = [ca, certificate, key, token.reveal()].join("\0");
        format!("{INLINE}{}", STANDARD.encode(pem))
    }

    /// Credentials from PEM text.
    pub fn from_pem(
        ca: &str,
        certificate: &str,
        key: &str,
        token: JobToken,
    ) -> Result<Credentials> {
        let tls = configs(ca.as_bytes(), certificate.as_bytes(), key.as_bytes(), "memory")?;
        Ok(Credentials::holding(
            None,
            Loaded { tls: Arc::new(tls), token, versions: Vec::new(), checked: Instant::now() },
        ))
    }

    fn watching(files: Files) -> Result<Credentials> {
        let loaded = files.load()?;
        Ok(Credentials::holding(Some(files), loaded))
    }

    fn holding(files: Option<Files>, loaded: Loaded) -> Credentials {
        Credentials(Arc::new(Shared { files, loaded: Mutex::new(loaded) }))
    }

    /// The TLS configurations and the token, read again if their files have changed.
    pub(crate) fn current(&self) -> (Arc<TlsConfigs>, JobToken) {
        let mut loaded = self.0.loaded.lock();
        if let Some(files) = &self.0.files
            && loaded.checked.elapsed() >= CHECK_INTERVAL
        {
            loaded.checked = Instant::now();
            if files.versions() != loaded.versions {
                match files.load() {
                    Ok(new) => *loaded = new,
                    // Perhaps only some of the files have been replaced so far.
                    Err(e) => tracing::warn!("the old credentials stay in use: {e}"),
                }
            }
        }
        (loaded.tls.clone(), loaded.token.clone())
    }

    /// The job token; empty if there is none.
    pub fn token(&self) -> JobToken {
        self.current().1
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.files {
            Some(files) => write!(f, "Credentials({})", files.certificate.display()),
            None => f.write_str("Credentials(in memory)"),
        }
    }
}

impl Files {
    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.ca, &self.certificate, &self.key].into_iter().chain(&self.token)
    }

    fn versions(&self) -> Vec<Option<Version>> {
        use std::os::unix::fs::MetadataExt;
        let version = |path: &PathBuf| {
            let data = std::fs::metadata(path).ok()?;
            Some((data.modified().ok()?, data.ino(), data.len()))
        };
        self.all().map(version).collect()
    }

    fn load(&self) -> Result<Loaded> {
        // Taken before the files are read, so that the next check sees a later change.
        let versions = self.versions();
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|e| {
                err!(
                    NotFound,
                    "cannot read {}: {e}; `ferroflow certs` makes credentials",
                    path.display()
                )
            })
        };
        let place = self.certificate.display().to_string();
        let (ca, certificate, key) = (read(&self.ca)?, read(&self.certificate)?, read(&self.key)?);
        let tls = Arc::new(configs(&ca, &certificate, &key, &place)?);
        let token = match &self.token {
            Some(path) => {
                let text = String::from_utf8(read(path)?);
                let text = text.map_err(|_| err!(InvalidArgument, "the token is not text"))?;
                JobToken::new(text.trim())
            }
            None => JobToken::default(),
        };
        Ok(Loaded { tls, token, versions, checked: Instant::now() })
    }
}

fn configs(ca: &[u8], certificate: &[u8], key: &[u8], place: &str) -> Result<TlsConfigs> {
    let certificates = |pem: &[u8], what: &str| -> Result<Vec<CertificateDer<'static>>> {
        let all: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let all = all.map_err(|e| err!(InvalidArgument, "{place}: malformed {what}: {e}"))?;
        ensure!(!all.is_empty(), InvalidArgument, "{place}: no {what} in PEM format");
        Ok(all)
    };
    let Ok(key) = PrivateKeyDer::from_pem_slice(key) else {
        bail!(InvalidArgument, "{place}: no private key in PEM format");
    };
    TlsConfigs::new(
        certificates(ca, "CA certificate")?,
        certificates(certificate, "certificate")?,
        key,
    )
    .map_err(|e| e.context(place.to_string()))
}
