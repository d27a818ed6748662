//! `ferroflow dashboard`: a page that shows a running job.

mod board;
mod lines;
mod pages;
mod rate;
mod series;
mod straggler;

pub use board::{Board, Sources};
pub use pages::BoardPages;
pub use straggler::clock;

use crate::credentials::TrustArgs;
use crate::say::say;
use ferroflow::cluster::{Trust, stop_signal};
use ferroflow::{Code, Error, Result};
use ferroflow_metrics::TaskMetrics;
use ferroflow_observe::{BackgroundHttp, HttpOptions, HttpServer, TaskPages};
use std::path::PathBuf;
use std::sync::Arc;

/// Show a running job in the browser
///
/// Reads the HTTP ports of the tasks (see --http of `ferroflow server` and `ferroflow run`) and
/// serves a page: the tasks and the traffic between them, step rate and loss, the time of steps by
/// task and phase, stragglers, the graph with its placement, logs and checkpoints. The page loads
/// nothing from elsewhere. `ferroflow run` and `ferroflow train` open one with --dashboard.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ferroflow dashboard 127.0.0.1:9100 127.0.0.1:9101")]
pub struct Args {
    /// HTTP addresses of the tasks; a PORT alone is one of this host
    #[arg(value_name = "HOST:PORT", required = true, value_parser = parse_address)]
    tasks: Vec<String>,
    /// Address of the page; anything but loopback needs credentials
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8265")]
    bind: String,
    /// Folder with checkpoints to list
    #[arg(long, value_name = "DIR")]
    checkpoints: Option<PathBuf>,
    #[command(flatten)]
    trust: TrustArgs,
}

/// The HTTP address of a task, from what a user writes: `hosta:9100`, `9100`, or the URL of it.
pub fn parse_address(text: &str) -> Result<String, String> {
    let bare = text.strip_prefix("http://").or(text.strip_prefix("https://")).unwrap_or(text);
    let bare = bare.trim_end_matches('/');
    if bare.parse::<u16>().is_ok_and(|port| port > 0) {
        return Ok(format!("127.0.0.1:{bare}"));
    }
    let (host, port) = bare.rsplit_once(':').unwrap_or((bare, ""));
    let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
    match !host.is_empty() && !host.contains('/') && is_port {
        true => Ok(bare.to_string()),
        false => Err("expected HOST:PORT, the --http address of a task".into()),
    }
}

pub fn run(args: Args) -> Result<()> {
    let trust = args.trust.trust()?;
    let sources = Sources {
        addresses: args.tasks,
        checkpoints: args.checkpoints,
        trust: trust.clone(),
        ..Sources::default()
    };
    let board = Board::new(sources);
    let options = HttpOptions::parse(&args.bind, trust, false)?;
    runtime()?.block_on(async {
        let server = HttpServer::bind(options).await?;
        say!("dashboard {}", server.url());
        let pages = Arc::new(BoardPages::new(board.clone()));
        tokio::select! {
            () = server.serve(pages) => {}
            () = board.watch() => {}
            () = stop_signal() => {}
        }
        Ok(())
    })
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    let failed = |e| Error::new(Code::ResourceExhausted, format!("cannot start: {e}"));
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)
}

/// A board that a launcher keeps of its own processes, on a thread.
pub struct JobBoard {
    pub board: Arc<Board>,
    /// The folder in which the processes write their addresses.
    folder: PathBuf,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl JobBoard {
    /// Watches processes that get [`JobBoard::env`]. Serves the page at `page`, if given.
    pub fn start(page: Option<&str>, checkpoints: Option<PathBuf>) -> Result<JobBoard> {
        JobBoard::with(page, Sources { checkpoints, ..Sources::default() })
    }

    /// Watches these tasks too.
    pub fn with(page: Option<&str>, sources: Sources) -> Result<JobBoard> {
        let failed =
            |e: std::io::Error| Error::new(Code::Internal, format!("cannot watch the job: {e}"));
        let folder = private_folder().map_err(failed)?;
        let board = Board::new(Sources { folder: Some(folder.clone()), ..sources });
        let runtime = runtime()?;
        let server = match page {
            None => None,
            Some(address) => {
                let options = HttpOptions::parse(address, Trust::default(), false)?;
                Some(runtime.block_on(HttpServer::bind(options))?)
            }
        };
        if let Some(server) = &server {
            // Standard output belongs to the job.
            eprintln!("dashboard: {}", server.url());
        }
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let watched = board.clone();
        let work = move || {
            runtime.block_on(async {
                let pages = Arc::new(BoardPages::new(watched.clone()));
                let serving = async {
                    match server {
                        Some(server) => server.serve(pages).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = serving => {}
                    () = watched.watch() => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("ff-dashboard".into()).spawn(work);
        let thread = Some(thread.map_err(failed)?);
        Ok(JobBoard { board, folder, stop: Some(stop), thread })
    }

    /// The environment of processes on this host that the page shows.
    pub fn env(&self) -> [(String, String); 2] {
        [
            ("FERROFLOW_HTTP".into(), "127.0.0.1:0".into()),
            ("FERROFLOW_HTTP_DIR".into(), self.folder.display().to_string()),
        ]
    }
}

impl Drop for JobBoard {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The page of a job that is this process alone.
pub struct LocalPage {
    _server: BackgroundHttp,
    _watch: JobBoard,
}

impl LocalPage {
    pub fn start(
        address: &str,
        metrics: &Arc<TaskMetrics>,
        checkpoints: &std::path::Path,
    ) -> Result<LocalPage> {
        let watch = JobBoard::start(Some(address), Some(checkpoints.to_path_buf()))?;
        let options = HttpOptions::parse("127.0.0.1:0", Trust::default(), false)?;
        let pages = TaskPages { metrics: metrics.clone(), is_open: false };
        let server = BackgroundHttp::start(options, Arc::new(pages))?;
        let at = server.url().trim_start_matches("http://").to_string();
        std::fs::write(watch.folder.join("local"), at)
            .map_err(|e| Error::new(Code::Internal, format!("cannot watch the job: {e}")))?;
        Ok(LocalPage { _server: server, _watch: watch })
    }
}

/// A new folder that only this user can read.
fn private_folder() -> std::io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let unique = since.unwrap_or_default().as_nanos();
    let name = format!("ferroflow-job-{}-{unique:x}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_tasks_are_what_users_write() {
        assert_eq!(parse_address("9100"), Ok("127.0.0.1:9100".into()));
        assert_eq!(parse_address("hosta:9100"), Ok("hosta:9100".into()));
        assert_eq!(parse_address("http://[::1]:9100/"), Ok("[::1]:9100".into()));
        for wrong in ["localhost", "hosta:", ":9100", "hosta:0", "hosta:123456", "h/x:80", ""] {
            assert!(parse_address(wrong).is_err(), "{wrong}");
        }
    }
}
