//! The HTTP port of a process: health, metrics and the state of a task, for probes, Prometheus and
//! the dashboard. It only reads: no request changes a job.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod background;
mod body;
mod client;
mod export;
mod guard;
#[cfg(feature = "otlp")]
mod otlp;
mod pages;
mod server;

pub use background::{BackgroundHttp, Observation, note_address, observe_from_env};
pub use body::EventSender;
pub use client::HttpClient;
pub use export::MetricsExport;
pub use guard::{refuse_other_site, secure_headers};
pub use pages::TaskPages;
pub use server::{HttpAnswer, HttpOptions, HttpRequest, HttpServer, HttpService, host_names};
