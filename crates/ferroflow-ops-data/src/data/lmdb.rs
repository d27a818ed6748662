//! LMDBDataset: the keys and values of LMDB databases.

use super::dataset::*;
use super::scope::Scope;
use crate::io::lmdb::LmdbReader;
use crate::prelude::*;

struct Databases(Arc<Vec<String>>);

impl Dataset for Databases {
    fn iterate(&self, _: &Scope) -> Result<Elements> {
        let names = self.0.clone();
        let (mut at, mut open) = (0, None);
        Ok(Elements::from_files(move || {
            while let Some(name) = names.get(at) {
                let reader = match &mut open {
                    Some(reader) => reader,
                    none => none.insert(LmdbReader::open(name)?),
                };
                if let Some((key, value)) = reader.next()? {
                    return Ok(Some(vec![Tensor::string(key), Tensor::string(value)]));
                }
                (open, at) = (None, at + 1);
            }
            Ok(None)
        }))
    }
}

pub(crate) fn register(c: &mut Catalog) {
    for op in ["LMDBDataset", "ExperimentalLMDBDataset"] {
        c.op(op)
            .doc("A dataset of the keys and values of LMDB databases.")
            .input("filenames: string")
            .makes_dataset()
            .element_types()
            .stateful()
            .cpu(|init| {
                makes(init, move |ctx| {
                    let names = ctx.input(0)?;
                    ensure!(
                        names.rank() <= 1,
                        InvalidArgument,
                        "`filenames` must be a scalar or a vector."
                    );
                    let text = |s: &bytes::Bytes| String::from_utf8_lossy(s).into_owned();
                    Ok(Databases(Arc::new(names.strings()?.iter().map(text).collect())))
                })
            });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::testing::*;

    #[test]
    fn entries_of_all_files_are_elements() {
        let file = std::env::temp_dir().join(format!("ferroflow-data-{}.mdb", std::process::id()));
        std::fs::write(&file, crate::io::lmdb::tests::database(&[("k", b"v"), ("l", b"w")]))
            .unwrap();
        let name = bytes::Bytes::from(file.to_string_lossy().into_owned());
        let names = Tensor::from_strings([2], vec![name.clone(), name]).unwrap();
        let op = dataset("LMDBDataset", &[DType::String; 2]).input(names);
        let found = elements(&made(op)).unwrap();
        assert_eq!(found.len(), 4);
        assert_eq!(found[3], [Tensor::string("l"), Tensor::string("w")]);
        std::fs::remove_file(&file).unwrap();
    }
}
