//! The log of a process: text for people or JSON for programs, on standard error.

use ferroflow::{Code, Error, Result};
use ferroflow_metrics::TaskMetrics;
use serde_json::{Map, Value, json};
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, OnceLock};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

/// The format of the log.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people. FERROFLOW_LOG=info,audit=info adds a line for each connection and session
    #[default]
    Text,
    /// One JSON object per line, with a line for each connection, session and refusal
    Json,
}

impl LogFormat {
    /// The filter, unless the user sets one.
    pub fn default_filter(self) -> &'static str {
        match self {
            LogFormat::Text => "info,audit=warn",
            LogFormat::Json => "info",
        }
    }

    /// The format that `FERROFLOW_LOG_FORMAT` names.
    pub fn from_env() -> Result<LogFormat> {
        match std::env::var("FERROFLOW_LOG_FORMAT").unwrap_or_default().as_str() {
            "" | "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            other => Err(Error::new(
                Code::InvalidArgument,
                format!("FERROFLOW_LOG_FORMAT={other:?} must be text or json"),
            )),
        }
    }
}

/// The task of this process, as soon as it is known.
static TASK: LoggedTask = OnceLock::new();

type LoggedTask = OnceLock<Arc<TaskMetrics>>;

/// Logs to standard error with the filter in `FERROFLOW_LOG`, and keeps the last lines for the
/// dashboard.
pub fn log_to_stderr(format: LogFormat, metrics: &Arc<TaskMetrics>) {
    log_is_of(metrics);
    start(format, format.default_filter());
}

/// Logs as [`log_to_stderr`] does if the environment asks for a log. For programs that use standard
/// error for other text. Where a launcher watches the process, its lines are kept in any case.
pub fn log_if_asked() -> Result<()> {
    let is_set = |name: &str| std::env::var(name).is_ok_and(|value| !value.is_empty());
    if is_set("FERROFLOW_LOG") || is_set("FERROFLOW_LOG_FORMAT") {
        let format = LogFormat::from_env()?;
        start(format, format.default_filter());
    } else if is_set("FERROFLOW_HTTP") {
        let _ = tracing_subscriber::registry().with(kept("off")).try_init();
    }
    Ok(())
}

/// Sets the task of the log. Only the first call has an effect.
pub fn log_is_of(metrics: &Arc<TaskMetrics>) {
    let _ = TASK.set(metrics.clone());
}

/// Starts the log, with the filter `default` if `FERROFLOW_LOG` has none. If the program that
/// embeds this library has a log already, that log stays.
pub fn start(format: LogFormat, default: &str) {
    let asked = std::env::var("FERROFLOW_LOG").ok();
    let filter = asked.as_deref().and_then(|text| EnvFilter::try_new(text).ok());
    let (text, filter) = match (asked, filter) {
        (Some(text), Some(filter)) => (text, filter),
        _ => (default.to_string(), EnvFilter::new(default)),
    };
    let shown = match format {
        LogFormat::Json => tracing_subscriber::fmt::layer()
            .with_writer(io::stderr)
            .event_format(JsonLines(&TASK))
            .boxed(),
        LogFormat::Text => tracing_subscriber::fmt::layer()
            .with_writer(io::stderr)
            .with_ansi(io::stderr().is_terminal())
            .boxed(),
    };
    let shown = shown.with_filter(filter);
    let _ = tracing_subscriber::registry().with(shown).with(kept(&text)).try_init();
}

/// Keeps lines for the dashboard: those that the filter `shown` shows, and at least `info`.
fn kept<S>(shown: &str) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let filter = EnvFilter::new(kept_filter(shown));
    tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Kept(&TASK)).with_filter(filter)
}

fn kept_filter(shown: &str) -> &str {
    let shows_more =
        EnvFilter::new(shown).max_level_hint().is_none_or(|most| most > LevelFilter::INFO);
    if shows_more { shown } else { "info" }
}

/// Writes lines to the metrics of the process.
#[derive(Clone)]
struct Kept(&'static LoggedTask);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The formatter writes each line at once.
        if let Some(metrics) = self.0.get() {
            metrics.log_line(String::from_utf8_lossy(bytes).trim_end());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Kept {
    type Writer = Kept;

    fn make_writer(&'a self) -> Kept {
        self.clone()
    }
}

/// Writes one object per line, with the task of the process.
struct JsonLines(&'static LoggedTask);

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let about = event.metadata();
        let mut line = Map::new();
        line.insert("time".into(), time.into());
        line.insert("level".into(), about.level().as_str().to_ascii_lowercase().into());
        line.insert("target".into(), about.target().into());
        if let Some((job, task)) = self.0.get().map(|metrics| metrics.place()).or_else(rank) {
            line.insert("job".into(), job.into());
            line.insert("task".into(), task.into());
        }
        event.record(&mut Fields(&mut line));
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// The rank of this process, as long as the ranks have not met.
fn rank() -> Option<(String, u32)> {
    let rank = std::env::var("FERROFLOW_RANK").ok()?;
    Some(("rank".into(), rank.parse().ok()?))
}

/// Collects the fields of an event.
struct Fields<'m>(&'m mut Map<String, Value>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().into(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name().into(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().into(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_is_an_object_with_job_task_step_and_session() {
        static OWN: LoggedTask = OnceLock::new();
        OWN.set(TaskMetrics::new("ps", 3)).unwrap();
        let memory = Memory::default();
        let to = memory.clone();
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(move || to.clone())
            .event_format(JsonLines(&OWN));
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(step = 7, session = 2u64, peer = "\"a\"\n", "lost");
        });
        let text = String::from_utf8(memory.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&line["job"], &line["task"]), (&json!("ps"), &json!(3)));
        assert_eq!((&line["step"], &line["session"]), (&json!(7), &json!(2)));
        assert_eq!((&line["level"], &line["message"]), (&json!("warn"), &json!("lost")));
        assert_eq!(line["peer"], "\"a\"\n");
    }
}
