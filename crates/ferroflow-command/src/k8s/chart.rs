//! A Helm chart of a JobSet. Its templates are the manifest, with values in the places that users
//! change. All other text is fixed.

use super::job::KubernetesJob;
use super::manifests::jobset;
use super::{write_file, wrong, yaml};
use ferroflow::{Code, Error, Result};
use serde_json::{Value, json};
use std::path::Path;

/// The text of a manifest, with templates.
struct Template {
    text: String,
    values: Value,
}

pub fn write(job: &KubernetesJob, folder: &Path) -> Result<()> {
    if job.secret.as_ref().is_some_and(|secret| secret.manifest.is_some()) {
        // Users share charts, so a chart must contain no key.
        return Err(wrong(
            "a chart must not contain keys: make the Secret first (`ferroflow certs`, then `kubectl create secret \
             generic NAME --from-file=certs/job`) and give it with --secret NAME, or give --insecure",
        ));
    }
    let made = std::fs::create_dir_all(folder.join("templates"));
    made.map_err(|e| {
        Error::new(Code::Unavailable, format!("cannot make {}: {e}", folder.display()))
    })?;
    let Template { text, values } = template(job)?;
    let chart = json!({
        "apiVersion": "v2",
        "name": job.name,
        "description": "A training job of Ferroflow",
        "type": "application",
        "version": env!("CARGO_PKG_VERSION"),
        "appVersion": env!("CARGO_PKG_VERSION"),
    });
    write_file(&folder.join("Chart.yaml"), &yaml(&[chart])?)?;
    write_file(&folder.join("values.yaml"), &yaml(&[values])?)?;
    write_file(&folder.join("templates/jobset.yaml"), &text)
}

fn template(job: &KubernetesJob) -> Result<Template> {
    let mut documents = jobset(job)?;
    let mut values = json!({"image": job.image, "maxRestarts": job.max_restarts, "replicas": {}});
    // Placeholders are strings of letters, which YAML does not quote.
    let mut places: Vec<(String, String)> = Vec::new();
    let mut place = |value: &mut Value, template: &str| {
        let word = format!("PLACE{}", (b'A' + places.len() as u8) as char);
        *value = json!(word);
        places.push((word, template.to_string()));
    };
    for document in &mut documents {
        place(&mut document["metadata"]["name"], "{{ .Release.Name }}");
        let spec = &mut document["spec"];
        place(&mut spec["failurePolicy"]["maxRestarts"], "{{ .Values.maxRestarts }}");
        let Some(jobs) = spec["replicatedJobs"].as_array_mut() else { continue };
        for one in jobs {
            let role = one["name"].as_str().unwrap_or_default().to_string();
            let spec = &mut one["template"]["spec"];
            let container = &mut spec["template"]["spec"]["containers"][0];
            place(&mut container["image"], "{{ .Values.image | quote }}");
            if role == "rank" {
                // Ranks find each other by their number alone, so a release can have any number.
                values["replicas"][&role] = spec["completions"].clone();
                let count = format!("{{{{ .Values.replicas.{role} }}}}");
                place(&mut spec["completions"], &count);
                place(&mut spec["parallelism"], &count);
                let quoted = format!("{{{{ .Values.replicas.{role} | quote }}}}");
                let env = spec["template"]["spec"]["containers"][0]["env"].as_array_mut();
                let size = env.into_iter().flatten().find(|v| v["name"] == "FERROFLOW_SIZE");
                if let Some(size) = size {
                    place(&mut size["value"], &quoted);
                }
            }
        }
    }
    if values["replicas"].as_object().is_some_and(serde_json::Map::is_empty) {
        // Tasks of a cluster list each other, so their number is part of the templates.
        values.as_object_mut().map(|fields| fields.remove("replicas"));
    }
    let mut text = yaml(&documents)?;
    for (word, template) in places.iter().rev() {
        text = text.replace(word, template);
    }
    Ok(Template { text, values })
}

#[cfg(test)]
mod tests {
    use super::super::tests::job;
    use super::*;

    /// Expands the few templates of a chart as Helm does.
    fn installed(template: &Template, release: &str) -> Vec<Value> {
        let mut text = template.text.replace("{{ .Release.Name }}", release);
        let values = &template.values;
        let mut put = |name: &str, value: &Value| {
            let plain = value.as_str().map_or_else(|| value.to_string(), String::from);
            text = text.replace(&format!("{{{{ .Values.{name} }}}}"), &plain);
            let quoted = format!("{{{{ .Values.{name} | quote }}}}");
            text = text.replace(&quoted, &json!(plain).to_string());
        };
        put("image", &values["image"]);
        put("maxRestarts", &values["maxRestarts"]);
        put("replicas.rank", &values["replicas"]["rank"]);
        assert!(!text.contains("{{"), "{text}");
        text.split("\n---\n").map(|one| serde_yaml_ng::from_str(one).unwrap()).collect()
    }

    #[test]
    fn an_installed_chart_is_the_jobset_that_render_writes() {
        for words in [
            "--name mine --secret s -n 3 -- train",
            "--name mine --insecure --ps 2 --workers 2 --chief --evaluator -- train a b",
        ] {
            let job = job(words).unwrap();
            assert_eq!(installed(&template(&job).unwrap(), "mine"), jobset(&job).unwrap());
        }
    }

    #[test]
    fn a_chart_never_contains_a_key() {
        let e = write(&job("-n 2 -- train").unwrap(), Path::new("/nonexistent")).unwrap_err();
        assert!(e.message().contains("--secret NAME"), "{e}");
    }
}
