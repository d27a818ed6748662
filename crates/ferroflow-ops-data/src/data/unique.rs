//! UniqueDataset: each element once.

use super::dataset::*;
use super::scope::Scope;
use crate::prelude::*;
use std::collections::HashSet;

struct Unique(DatasetRef);

impl Dataset for Unique {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(Uniting { input: self.0.iterate(scope)?, seen: HashSet::new() }))
    }
}

struct Uniting {
    input: Elements,
    seen: HashSet<(Shape, Vec<u8>)>,
}

impl Produce for Uniting {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            while let Some(element) = self.input.next().await? {
                let [t] = &element[..] else {
                    bail!(InvalidArgument, "an element has {} components", element.len());
                };
                if self.seen.insert((t.shape().clone(), key(t)?)) {
                    return Ok(Some(element));
                }
            }
            Ok(None)
        })
    }
}

/// The content of a tensor: equal for equal ones of one shape only.
fn key(t: &Tensor) -> Result<Vec<u8>> {
    if t.dtype() != DType::String {
        return Ok(t.bytes()?.to_vec());
    }
    let mut key = Vec::new();
    for s in t.strings()? {
        key.extend_from_slice(&(s.len() as u64).to_le_bytes());
        key.extend_from_slice(s);
    }
    Ok(key)
}

pub(crate) fn register(c: &mut Catalog) {
    for op in ["UniqueDataset", "ExperimentalUniqueDataset"] {
        let b = c
            .op(op)
            .doc("A dataset of the elements without repetitions.")
            .input("input_dataset: variant")
            .makes_dataset()
            .element_types()
            .cpu(|init| {
                makes(init, |ctx| {
                    let input = input(ctx, 0)?;
                    let dtypes = &input.types().dtypes;
                    ensure!(
                        dtypes.len() == 1,
                        InvalidArgument,
                        "UniqueDataset only supports inputs with a single component."
                    );
                    ensure!(
                        matches!(dtypes[0], DType::Int32 | DType::Int64 | DType::String),
                        InvalidArgument,
                        "UniqueDataset only supports inputs with a single `tf.int32`, `tf.int64`, \
                         or `tf.string` component."
                    );
                    Ok(Unique(input))
                })
            });
        if op == "UniqueDataset" {
            drop(b.metadata_attr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::testing::*;

    #[test]
    fn each_element_comes_once() {
        let of = slices(&[Tensor::vector(&[3i64, 1, 3, 2, 1])]);
        let unique = made(dataset("UniqueDataset", &[DType::Int64]).input(of));
        assert_eq!(longs(&unique), [[3], [1], [2]]);
        // Lengths keep strings apart that are equal when joined.
        let a = Tensor::from_strings([2], vec!["a".into(), "bc".into()]).unwrap();
        let b = Tensor::from_strings([2], vec!["ab".into(), "c".into()]).unwrap();
        assert_ne!(key(&a).unwrap(), key(&b).unwrap());
    }
}
