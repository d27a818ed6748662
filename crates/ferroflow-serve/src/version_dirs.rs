//! The folders of a model's versions.

use crate::config::VersionPolicy;
use ferroflow_core::{Result, err, files};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The file that makes a folder a SavedModel.
const SAVED_MODEL: &str = "saved_model.pb";

/// The versions of the model at `path`. A SavedModel itself is version 1.
pub(crate) fn versions(path: &Path) -> Result<BTreeMap<i64, PathBuf>> {
    if files::exists(&path.join(SAVED_MODEL)) {
        return Ok([(1, path.to_path_buf())].into());
    }
    let failed = |e| err!(NotFound, "cannot read the folder {}: {e}", path.display());
    let mut found = BTreeMap::new();
    for name in files::read_dir(path).map_err(failed)? {
        let folder = path.join(&name);
        let number = name.to_str().and_then(|name| name.parse::<i64>().ok());
        if let Some(number) = number.filter(|&number| number >= 0 && files::is_dir(&folder)) {
            found.insert(number, folder);
        }
    }
    Ok(found)
}

impl VersionPolicy {
    /// The versions to serve among the existing ones.
    pub(crate) fn pick(&self, mut there: BTreeMap<i64, PathBuf>) -> BTreeMap<i64, PathBuf> {
        match self {
            VersionPolicy::All => there,
            VersionPolicy::Specific(versions) => {
                there.retain(|version, _| versions.contains(version));
                there
            }
            VersionPolicy::Latest(count) => {
                while there.len() > (*count).max(1) {
                    there.pop_first();
                }
                there
            }
        }
    }
}

/// The last change of a version's files. A version that could not be loaded is tried again after a
/// change: it may have been copied in the meantime.
pub(crate) fn last_change(folder: &Path) -> Option<SystemTime> {
    let files = ["", SAVED_MODEL, "variables", "variables/variables.index", "assets"];
    let time = |name: &str| files::metadata(&folder.join(name)).ok()?.modified().ok();
    files.into_iter().filter_map(time).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_pick_versions() {
        let there: BTreeMap<i64, PathBuf> =
            [1, 2, 5, 10].into_iter().map(|v| (v, PathBuf::from(v.to_string()))).collect();
        let pick =
            |policy: VersionPolicy| policy.pick(there.clone()).into_keys().collect::<Vec<_>>();
        assert_eq!(pick(VersionPolicy::default()), [10]);
        assert_eq!(pick(VersionPolicy::Latest(2)), [5, 10]);
        assert_eq!(pick(VersionPolicy::All), [1, 2, 5, 10]);
        assert_eq!(pick(VersionPolicy::Specific([2, 7].into())), [2]);
    }
}
