//! Metrics in the data model of OpenTelemetry, converted from the text for Prometheus. Names and
//! labels stay the same, so dashboards work with either.

use serde_json::{Value, json};

/// Keys and values.
pub(super) type Attributes = Vec<(String, String)>;

/// Counters add up from `started` to `now`, in nanoseconds since 1970.
#[derive(Clone, Copy)]
pub(super) struct ExportTimes {
    pub started: u64,
    pub now: u64,
}

/// Sums add up since the start of the process.
const CUMULATIVE: u32 = 2;

/// A metric with all its samples.
#[derive(Default)]
struct Exported {
    name: String,
    help: String,
    unit: String,
    kind: String,
    samples: Vec<ExportedSample>,
}

struct ExportedSample {
    /// The suffix after the metric's name, such as `_total`.
    suffix: String,
    labels: Attributes,
    value: f64,
}

/// An `ExportMetricsServiceRequest` in JSON. `text` is in the OpenMetrics format.
pub(super) fn payload(text: &str, resource: &[(String, String)], times: ExportTimes) -> Value {
    let metrics: Vec<Value> = families(text).iter().filter_map(|f| metric(f, times)).collect();
    let scope = json!({"name": "ferroflow", "version": env!("CARGO_PKG_VERSION")});
    json!({"resourceMetrics": [{
        "resource": {"attributes": attributes(resource)},
        "scopeMetrics": [{"scope": scope, "metrics": metrics}],
    }]})
}

fn families(text: &str) -> Vec<Exported> {
    let mut all: Vec<Exported> = Vec::new();
    for line in text.lines() {
        if let Some(about) = line.strip_prefix("# ") {
            let mut words = about.splitn(3, ' ');
            let (kind, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let rest = words.next().unwrap_or_default().to_string();
            if all.last().is_none_or(|last| last.name != name) {
                all.push(Exported { name: name.into(), ..Exported::default() });
            }
            let Some(last) = all.last_mut() else { continue };
            match kind {
                "HELP" => last.help = rest,
                "TYPE" => last.kind = rest,
                "UNIT" => last.unit = rest,
                _ => {}
            }
        } else if let Some(last) = all.last_mut() {
            last.samples.extend(sample(line, &last.name));
        }
    }
    all
}

/// `name_suffix{label="value",…} number`.
fn sample(line: &str, family: &str) -> Option<ExportedSample> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.push((label.trim_start_matches(',').to_string(), value));
            rest = after;
        }
        rest = &rest[1..];
    }
    let number = rest.split_whitespace().next()?;
    let suffix = name.strip_prefix(family)?.to_string();
    Some(ExportedSample { suffix, labels, value: number.parse().ok()? })
}

/// The text up to the closing quote, and the rest after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut characters) = (String::new(), text.char_indices());
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

fn metric(family: &Exported, times: ExportTimes) -> Option<Value> {
    let Exported { name, help, kind, samples, .. } = family;
    let (key, data) = match kind.as_str() {
        "counter" => {
            let totals = samples.iter().filter(|s| s.suffix == "_total");
            let points = points(totals, times);
            let sum = json!({
                "aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points,
            });
            ("sum", sum)
        }
        "histogram" => {
            let points = histogram_points(samples, times);
            let data = json!({"aggregationTemporality": CUMULATIVE, "dataPoints": points});
            ("histogram", data)
        }
        _ => ("gauge", json!({"dataPoints": points(samples.iter(), times)})),
    };
    // The units of UCUM.
    let unit = match family.unit.as_str() {
        "seconds" => "s",
        "bytes" => "By",
        other => other,
    };
    let has_points = data["dataPoints"].as_array().is_some_and(|points| !points.is_empty());
    has_points.then(|| json!({"name": name, "description": help, "unit": unit, key: data}))
}

fn points<'s>(samples: impl Iterator<Item = &'s ExportedSample>, times: ExportTimes) -> Vec<Value> {
    let finite = samples.filter(|sample| sample.value.is_finite());
    let point = |sample: &ExportedSample| {
        json!({
            "attributes": attributes(&sample.labels),
            "startTimeUnixNano": times.started.to_string(),
            "timeUnixNano": times.now.to_string(),
            "asDouble": sample.value,
        })
    };
    finite.map(point).collect()
}

/// A point for each set of labels. A bucket of the text counts all values up to a bound; here each
/// value counts in one bucket.
fn histogram_points(samples: &[ExportedSample], times: ExportTimes) -> Vec<Value> {
    let mut all = Vec::new();
    for end in samples.iter().filter(|sample| sample.suffix == "_count") {
        let others = |sample: &ExportedSample| -> Attributes {
            sample.labels.iter().filter(|(key, _)| key != "le").cloned().collect()
        };
        let same = || samples.iter().filter(|sample| others(sample) == end.labels);
        let sum = same().find(|sample| sample.suffix == "_sum").map_or(0.0, |sample| sample.value);
        let (mut bounds, mut counts, mut below) = (Vec::new(), Vec::new(), 0.0);
        for bucket in same().filter(|sample| sample.suffix == "_bucket") {
            let bound = bucket.labels.iter().find(|(key, _)| key == "le");
            let bound = bound.and_then(|(_, value)| value.parse::<f64>().ok());
            bounds.extend(bound.filter(|bound| bound.is_finite()));
            counts.push(((bucket.value - below).max(0.0) as u64).to_string());
            below = bucket.value;
        }
        all.push(json!({
            "attributes": attributes(&end.labels),
            "startTimeUnixNano": times.started.to_string(),
            "timeUnixNano": times.now.to_string(),
            "count": (end.value as u64).to_string(),
            "sum": sum,
            "bucketCounts": counts,
            "explicitBounds": bounds,
        }));
    }
    all
}

fn attributes(pairs: &[(String, String)]) -> Vec<Value> {
    pairs.iter().map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_metrics::{MetricsFormat, StepEnd, TaskMetrics};
    use std::time::{Duration, Instant};

    fn metrics(text: &str) -> Vec<Value> {
        let whole = payload(text, &[], ExportTimes { started: 1, now: 2 });
        whole["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap().clone()
    }

    #[test]
    fn labels_are_read_as_they_were_written() {
        let text = "# TYPE a counter\na_total{x=\"1\\\"\\\\\\n,}\",y=\"\"} 3\n# EOF\n";
        let point = &metrics(text)[0]["sum"]["dataPoints"][0];
        let labels = json!([
            {"key": "x", "value": {"stringValue": "1\"\\\n,}"}},
            {"key": "y", "value": {"stringValue": ""}},
        ]);
        assert_eq!((&point["attributes"], &point["asDouble"]), (&labels, &json!(3.0)));
    }

    #[test]
    fn buckets_count_each_value_once() {
        let text = "# TYPE h histogram\n# UNIT h seconds\nh_sum 5.5\nh_count 4\n\
                    h_bucket{le=\"1.0\"} 1\nh_bucket{le=\"2.0\"} 3\nh_bucket{le=\"+Inf\"} 4\n";
        let found = &metrics(text)[0];
        let point = &found["histogram"]["dataPoints"][0];
        assert_eq!(point["bucketCounts"], json!(["1", "2", "1"]));
        assert_eq!(point["explicitBounds"], json!([1.0, 2.0]));
        assert_eq!((&point["count"], &point["sum"]), (&json!("4"), &json!(5.5)));
        assert_eq!(found["unit"], "s");
    }

    #[test]
    fn every_metric_of_a_task_is_sent() {
        let task = TaskMetrics::new("worker", 0);
        let ms = Duration::from_millis;
        task.part_ended(1, StepEnd::Ok, Instant::now() - ms(10), ms(1), ms(4));
        let text = task.encode(MetricsFormat::OpenMetrics);
        let sent = metrics(&text);
        let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        // A metric without a sample is left out, such as those of GPUs on a machine without one.
        let names = names.filter_map(|line| line.split(' ').next()).filter(|name| {
            text.lines().any(|line| !line.starts_with('#') && line.starts_with(name))
        });
        for name in names {
            assert!(sent.iter().any(|metric| metric["name"] == name), "{name} is not sent");
        }
        let parts = sent.iter().find(|m| m["name"] == "ferroflow_step_part_seconds").unwrap();
        assert_eq!(parts["histogram"]["dataPoints"][0]["count"], "1");
    }
}
