//! MatchingFilesDataset: the names of files that match patterns.

use super::dataset::*;
use super::scope::Scope;
use crate::io::files_matching;
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::{CancelToken, files};
use ferroflow_op_kit::file::local;

struct MatchingFiles(Arc<Vec<Bytes>>);

impl Dataset for MatchingFiles {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        let (mut names, mut first) = (None, true);
        let (patterns, cancel) = (self.0.clone(), scope.cancel().clone());
        Ok(Elements::from_files(move || {
            let names = match &mut names {
                Some(names) => names,
                not_yet => not_yet.insert(matching(&patterns, &cancel)?.into_iter()),
            };
            let next = names.next();
            ensure!(
                next.is_some() || !first,
                NotFound,
                "Don't find any matched files: {}",
                String::from_utf8_lossy(&patterns.join(&b", "[..]))
            );
            first = false;
            Ok(next.map(|name| vec![Tensor::string(name)]))
        }))
    }
}

/// The files that match the patterns, sorted for each pattern.
fn matching(patterns: &[Bytes], cancel: &CancelToken) -> Result<Vec<Bytes>> {
    let mut found: Vec<Bytes> = Vec::new();
    for pattern in patterns {
        let mut matching = files_matching(pattern, cancel)?;
        matching.retain(|name| !files::is_dir(local(name)));
        matching.sort();
        found.extend(matching);
    }
    Ok(found)
}

pub(crate) fn register(c: &mut Catalog) {
    for op in ["MatchingFilesDataset", "ExperimentalMatchingFilesDataset"] {
        c.op(op)
            .doc("A dataset of the names of files that match patterns: sorted for each of these.")
            .input("patterns: string")
            .makes_dataset()
            .stateful()
            .cpu(|_| {
                makes_typed(ElementTypes::scalar(DType::String), |ctx| {
                    let t = ctx.input(0)?;
                    ensure!(
                        t.rank() <= 1,
                        InvalidArgument,
                        "`patterns` must be a scalar or a vector."
                    );
                    Ok(MatchingFiles(Arc::new(t.strings()?.to_vec())))
                })
            });
    }
}
