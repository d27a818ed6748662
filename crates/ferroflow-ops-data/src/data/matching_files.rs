//! MatchingFilesDataset: the names of files that match patterns.

use super::dataset::*;
use super::scope::Scope;
use crate::io::files_matching;
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_op_kit::file::local;

struct MatchingFiles(Arc<Vec<Bytes>>);

impl Dataset for MatchingFiles {
    fn iterate(&self, _: &Scope) -> Result<Elements> {
        let mut found: Vec<Bytes> = Vec::new();
        for pattern in self.0.iter() {
            let mut matching = files_matching(pattern)?;
            matching.retain(|name| !local(name).is_dir());
            matching.sort();
            found.extend(matching);
        }
        let mut names = found.into_iter();
        let mut first = true;
        let patterns = self.0.clone();
        Ok(Elements::from_fn(move || {
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
