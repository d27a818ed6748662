//! The text formats of Prometheus.

/// A format of `/metrics`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsFormat {
    /// OpenMetrics 1.0, which Prometheus requests.
    OpenMetrics,
    /// The older text format 0.0.4, which every tool reads.
    Text,
}

impl MetricsFormat {
    /// The format for a client with this `Accept` header.
    pub fn accepted(accept: &str) -> MetricsFormat {
        match accept.contains("application/openmetrics-text") {
            true => MetricsFormat::OpenMetrics,
            false => MetricsFormat::Text,
        }
    }

    /// The `Content-Type` of the format.
    pub fn content_type(self) -> &'static str {
        match self {
            MetricsFormat::OpenMetrics => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
            MetricsFormat::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Converts OpenMetrics to this format.
    pub(crate) fn convert(self, text: String) -> String {
        match self {
            MetricsFormat::OpenMetrics => text,
            MetricsFormat::Text => plain(&text),
        }
    }
}

/// In the older format a counter is named as its sample, and there are neither units nor infos.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("# UNIT ") || line == "# EOF" {
            continue;
        }
        let help = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' '));
        if let Some((name, help)) = help {
            let kind = lines.peek().and_then(|next| next.strip_prefix("# TYPE "));
            let suffix = kind.and_then(|rest| rest.split_once(' ')).map_or("", |(_, k)| suffix(k));
            out += &format!("# HELP {name}{suffix} {help}\n");
            continue;
        }
        let kind = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '));
        if let Some((name, kind)) = kind {
            let shown = match kind {
                "info" => "gauge",
                "unknown" => "untyped",
                other => other,
            };
            out += &format!("# TYPE {name}{} {shown}\n", suffix(kind));
            continue;
        }
        out += line;
        out.push('\n');
    }
    out
}

/// What samples of this type have after the name of their metric.
fn suffix(kind: &str) -> &'static str {
    match kind {
        "counter" => "_total",
        "info" => "_info",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prometheus_gets_openmetrics_and_others_the_older_text() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3";
        assert_eq!(MetricsFormat::accepted(prometheus), MetricsFormat::OpenMetrics);
        assert_eq!(MetricsFormat::accepted("*/*"), MetricsFormat::Text);
    }

    #[test]
    fn a_counter_is_named_as_its_sample_in_the_older_text() {
        let open = "# HELP a Things.\n# TYPE a counter\n# UNIT a seconds\na_total 1\n# EOF\n";
        let text = "# HELP a_total Things.\n# TYPE a_total counter\na_total 1\n";
        assert_eq!(MetricsFormat::Text.convert(open.into()), text);
    }
}
