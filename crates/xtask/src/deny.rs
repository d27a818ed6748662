//! `cargo xtask deny`: checks licences, duplicates, banned crates and sources of the dependencies
//! by the rules of deny.toml.
//!
//! This checks the parts of deny.toml that need no network, in a second. `cargo deny` reads the
//! same file but takes minutes to build, so CI does not use it.

use crate::paths;
use crate::steps::{self, Failure, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Check the licences, duplicates and sources of all dependencies.
#[derive(clap::Args)]
pub struct Args {}

/// The registry of crates.io, as `cargo metadata` writes it.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub fn run(_: &Args) -> Result {
    let text = read("deny.toml")?;
    let rules = Rules::parse(&text)?;
    let mut words = vec!["metadata", "--format-version", "1", "--locked"];
    rules.targets.iter().for_each(|target| words.extend(["--filter-platform", target]));
    let mut command = steps::cargo(&words);
    let output = command.current_dir(paths::root()).output();
    let output = output.map_err(|e| Failure(format!("cannot run cargo metadata: {e}")))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Failure(format!("cargo metadata failed: {why}")));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|e| Failure(format!("cargo metadata wrote no JSON: {e}")))?;
    let dependencies = Dependency::all(&metadata);
    let found = rules.check(&dependencies);
    if found.is_empty() {
        println!("{} dependencies keep the rules of deny.toml", dependencies.len());
        return Ok(());
    }
    Err(Failure(format!("{}\nThe rules are in deny.toml.", found.join("\n"))))
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(paths::root().join(path))
        .map_err(|e| Failure(format!("cannot read {path}: {e}")))
}

/// A package that this workspace does not contain.
struct Dependency {
    name: String,
    version: String,
    license: Option<String>,
    source: String,
}

impl Dependency {
    /// The dependencies that the workspace uses on the platform of `metadata`.
    fn all(metadata: &Value) -> Vec<Dependency> {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let nodes = list(&metadata["resolve"]["nodes"]);
        let used: BTreeSet<&str> = nodes.iter().filter_map(|node| node["id"].as_str()).collect();
        let packages = list(&metadata["packages"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let dependency = |package: &Value| {
            let is_used = package["id"].as_str().is_some_and(|id| used.contains(id));
            let source = package["source"].as_str().filter(|_| is_used)?;
            Some(Dependency {
                name: text(&package["name"]),
                version: text(&package["version"]),
                license: package["license"].as_str().map(str::to_string),
                source: source.to_string(),
            })
        };
        packages.iter().filter_map(dependency).collect()
    }
}

/// The rules of deny.toml.
struct Rules {
    targets: Vec<String>,
    licenses: BTreeSet<String>,
    /// By name, with the reason.
    banned: BTreeMap<String, String>,
    /// `name@version` of older versions that may coexist with newer ones.
    skipped: BTreeSet<String>,
}

impl Rules {
    fn parse(text: &str) -> Result<Rules> {
        let file: toml::Table =
            text.parse().map_err(|e| Failure(format!("deny.toml is malformed: {e}")))?;
        let list = |table: &str, key: &str| -> Vec<toml::Value> {
            let list = file.get(table).and_then(|t| t.get(key)).and_then(toml::Value::as_array);
            list.cloned().unwrap_or_default()
        };
        let texts = |values: Vec<toml::Value>| -> Vec<String> {
            values.iter().filter_map(|v| v.as_str().map(str::to_string)).collect()
        };
        let entry = |value: toml::Value| -> Result<(String, String)> {
            let field = |key: &str| value.get(key).and_then(toml::Value::as_str);
            match (field("crate"), field("reason")) {
                (Some(name), Some(reason)) => Ok((name.to_string(), reason.to_string())),
                _ => Err(Failure(format!("deny.toml: {value} needs a crate and a reason"))),
            }
        };
        let entries = |key: &str| list("bans", key).into_iter().map(entry).collect::<Result<_>>();
        let (banned, skipped): (BTreeMap<_, _>, BTreeMap<_, _>) =
            (entries("deny")?, entries("skip")?);
        let license = |text: String| text.split(' ').next().unwrap_or_default().to_string();
        Ok(Rules {
            targets: texts(list("graph", "targets")),
            licenses: texts(list("licenses", "allow")).into_iter().map(license).collect(),
            banned,
            skipped: skipped.into_keys().collect(),
        })
    }

    fn check(&self, dependencies: &[Dependency]) -> Vec<String> {
        let mut found = Vec::new();
        let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for dependency in dependencies {
            let Dependency { name, version, license, source } = dependency;
            if !self.allows(license.as_deref()) {
                let license = license.as_deref().unwrap_or("none");
                found.push(format!("{name} {version}: the licence {license} is not allowed"));
            }
            if let Some(reason) = self.banned.get(name) {
                found.push(format!("{name} {version} is banned: {reason}"));
            }
            if source != CRATES_IO {
                found.push(format!("{name} {version} comes from {source}, not from crates.io"));
            }
            versions.entry(name).or_default().push(version);
        }
        for (name, versions) in &versions {
            let is_skipped = |version: &&str| self.skipped.contains(&format!("{name}@{version}"));
            let kept = versions.iter().filter(|version| !is_skipped(version)).count();
            if kept > 1 {
                let all = versions.join(", ");
                found.push(format!("{name} is there in several versions: {all}"));
            }
        }
        let is_stale = |skipped: &&String| {
            let (name, version) = skipped.split_once('@').unwrap_or((skipped, ""));
            versions.get(name).is_none_or(|all| all.len() < 2 || !all.contains(&version))
        };
        let stale = self.skipped.iter().filter(is_stale);
        found.extend(stale.map(|skipped| format!("deny.toml skips {skipped} without need")));
        found
    }

    /// Whether a licence expression can be met by licences that are allowed.
    fn allows(&self, license: Option<&str>) -> bool {
        let Some(license) = license else { return false };
        let parsed = spdx::Expression::parse_mode(license, spdx::ParseMode::LAX);
        let is_allowed = |wanted: &spdx::LicenseReq| {
            wanted.license.id().is_some_and(|id| self.licenses.contains(id.name))
        };
        parsed.is_ok_and(|expression| expression.evaluate(is_allowed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "
        [licenses]
        allow = ['MIT', 'Apache-2.0 WITH LLVM-exception', 'ISC']
        [bans]
        deny = [{ crate = 'openssl', reason = 'rustls' }]
        skip = [{ crate = 'old@1.0.0', reason = 'x' }]
    ";

    fn dependency(name: &str, version: &str, license: &str) -> Dependency {
        let license = (!license.is_empty()).then(|| license.to_string());
        Dependency { name: name.into(), version: version.into(), license, source: CRATES_IO.into() }
    }

    fn found(more: Vec<Dependency>) -> Vec<String> {
        let mut all = vec![dependency("old", "1.0.0", "MIT"), dependency("old", "2.0.0", "MIT")];
        all.extend(more);
        Rules::parse(RULES).unwrap().check(&all)
    }

    #[test]
    fn expressions_are_met_by_allowed_licences() {
        for license in ["MIT OR GPL-3.0", "MIT/Apache-2.0", "Apache-2.0 AND ISC"] {
            assert!(found(vec![dependency("a", "1.0.0", license)]).is_empty(), "{license}");
        }
        for license in ["GPL-3.0", "MIT AND GPL-3.0", "", "nonsense"] {
            let found = found(vec![dependency("a", "1.0.0", license)]);
            assert!(found.len() == 1 && found[0].contains("licence"), "{license}: {found:?}");
        }
    }

    #[test]
    fn banned_foreign_and_repeated_crates_are_found() {
        let banned = found(vec![dependency("openssl", "1.0.0", "MIT")]);
        assert_eq!(banned, ["openssl 1.0.0 is banned: rustls"]);
        let source = "git+https://example.org/a".to_string();
        let foreign = found(vec![Dependency { source, ..dependency("a", "1.0.0", "MIT") }]);
        assert!(foreign.len() == 1 && foreign[0].contains("example.org"), "{foreign:?}");
        let twice = ["1.0.0", "2.0.0"].map(|version| dependency("a", version, "MIT"));
        assert_eq!(found(twice.into()), ["a is there in several versions: 1.0.0, 2.0.0"]);
    }

    #[test]
    fn exceptions_without_need_are_found() {
        let rules = Rules::parse(RULES).unwrap();
        let found = rules.check(&[dependency("old", "1.0.0", "MIT")]);
        assert_eq!(found, ["deny.toml skips old@1.0.0 without need"]);
        assert!(Rules::parse("[bans]\nskip = [{ crate = 'a@1' }]").is_err(), "no reason");
    }
}
