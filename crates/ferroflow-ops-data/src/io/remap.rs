//! GenerateVocabRemapping and LoadAndRemapMatrix: weights of a checkpoint for another vocabulary.

use super::bundle::{BundleReader, FirstReader, Slice};
use super::records::Input;
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::CancelToken;
use ferroflow_op_kit::tfrecord::RecordCompression;
use std::collections::{HashMap, HashSet};

fn text(ctx: &Ctx<'_>, i: usize, name: &str) -> Result<String> {
    let t = ctx.input(i)?;
    ensure!(
        t.elements() == 1,
        InvalidArgument,
        "{name} should be a single string, but got {} elements.",
        t.elements()
    );
    Ok(String::from_utf8_lossy(&t.strings()?[0]).into_owned())
}

/// The first lines of a file, up to `most` if that is not negative.
fn lines(name: &str, most: i64) -> Result<Vec<Bytes>> {
    let mut input = Input::open(name, RecordCompression::None)?;
    let mut all = Vec::new();
    while most < 0 || (all.len() as i64) < most {
        let Some(line) = input.line()? else { break };
        all.push(line);
    }
    Ok(all)
}

struct VocabRemapping {
    offset: usize,
    count: usize,
    old_size: i64,
}

impl Kernel for VocabRemapping {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (new, old) = (text(ctx, 0, "new_vocab_file")?, text(ctx, 1, "old_vocab_file")?);
        let end = self.offset.saturating_add(self.count);
        let words = lines(&new, end as i64)?;
        ensure!(
            words.len() >= end,
            InvalidArgument,
            "Invalid offset. The new vocabulary {new} has {} lines, but {end} were asked for.",
            words.len()
        );
        let mut ids: HashMap<Bytes, i64> = HashMap::new();
        for (id, word) in lines(&old, self.old_size)?.into_iter().enumerate() {
            ids.insert(word, id as i64);
        }
        let found = words[self.offset..end].iter().map(|w| ids.get(w).copied().unwrap_or(-1));
        let remapping: Vec<i64> = found.collect();
        let present = remapping.iter().filter(|id| **id >= 0).count() as i32;
        ctx.set(0, Tensor::vector(&remapping))?;
        ctx.set(1, Tensor::scalar(present))
    }
}

fn read(prefix: &str, name: &str, cancel: &CancelToken) -> Result<Tensor> {
    match BundleReader::is_there(prefix) {
        true => BundleReader::open(prefix)?.read(name),
        false => {
            let reader = FirstReader::open(prefix, cancel)?;
            let rank = reader.find(name)?.1.rank();
            reader.read(name, &Slice::full(rank))
        }
    }
}

/// The places of old rows or columns; -1 for new ones. No old one is used twice.
fn remapping(ctx: &Ctx<'_>, i: usize, what: &str, most: usize) -> Result<Vec<Option<usize>>> {
    let t = ctx.input(i)?;
    ensure!(t.rank() == 1, InvalidArgument, "{what} must be a vector, got shape {}", t.shape());
    let mut used = HashSet::new();
    t.as_slice::<i64>()?
        .iter()
        .map(|&old| {
            if old < 0 {
                return Ok(None);
            }
            ensure!(
                (old as usize) < most,
                InvalidArgument,
                "{what} has the index {old}, but the matrix in the checkpoint has only {most}"
            );
            ensure!(used.insert(old), InvalidArgument, "{what} has the index {old} twice");
            Ok(Some(old as usize))
        })
        .collect()
}

struct RemapMatrix {
    rows: usize,
    columns: usize,
}

impl Kernel for RemapMatrix {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let name = text(ctx, 1, "old_tensor_name")?;
        let old = read(&text(ctx, 0, "ckpt_path")?, &name, &ctx.step().cancel)?;
        let &[old_rows, old_columns] = old.shape().dims() else {
            bail!(
                InvalidArgument,
                "Tensor {name} has shape {} in the checkpoint, expected a matrix",
                old.shape()
            );
        };
        let values = old.as_slice::<f32>().map_err(|_| {
            err!(InvalidArgument, "Tensor {name} in the checkpoint is {}, not float", old.dtype())
        })?;
        let rows = remapping(ctx, 2, "row_remapping", old_rows)?;
        ensure!(
            rows.len() == self.rows,
            InvalidArgument,
            "Size of row_remapping is {} instead of being equal to num_rows={}",
            rows.len(),
            self.rows
        );
        let columns = match ctx.input(3)?.elements() {
            0 => {
                ensure!(
                    old_columns == self.columns,
                    InvalidArgument,
                    "Tensor {name} has {old_columns} columns in the checkpoint, but num_cols={} \
                     without a col_remapping",
                    self.columns
                );
                (0..old_columns).map(Some).collect()
            }
            _ => remapping(ctx, 3, "col_remapping", old_columns)?,
        };
        ensure!(
            columns.len() == self.columns,
            InvalidArgument,
            "Size of col_remapping is {} instead of being equal to num_cols={}",
            columns.len(),
            self.columns
        );
        let initial = ctx.input(4)?.as_slice::<f32>()?;
        let mut fill = initial.iter();
        let mut used = 0;
        let mut out = Vec::with_capacity(self.rows * self.columns);
        for row in &rows {
            for column in &columns {
                out.push(match (row, column) {
                    (Some(row), Some(column)) => values[row * old_columns + column],
                    _ => {
                        used += 1;
                        fill.next().copied().unwrap_or(0.0)
                    }
                });
            }
        }
        ensure!(
            used == initial.len(),
            InvalidArgument,
            "initializing_values contained {} elements, but {used} missing values have to be \
             filled in",
            initial.len()
        );
        ctx.set(0, Tensor::from_slice([self.rows, self.columns], &out)?)
    }
}

fn size(init: &KernelInit<'_>, name: &str) -> Result<usize> {
    let n = init.int(name)?;
    usize::try_from(n).map_err(|_| err!(InvalidArgument, "{name} must not be negative, got {n}"))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("GenerateVocabRemapping")
        .doc("Where the words of a new vocabulary are in an old one; -1 for new words.")
        .input("new_vocab_file: string")
        .input("old_vocab_file: string")
        .output("remapping: int64")
        .output("num_present: int32")
        .attr("new_vocab_offset: int >= 0")
        .attr("num_new_vocab: int >= 0")
        .attr("old_vocab_size: int >= -1 = -1")
        .does_io()
        .shape(|c| {
            let count = usize::try_from(c.attrs.int("num_new_vocab")?).ok();
            Ok(vec![PartialShape::new([count]), PartialShape::scalar()])
        })
        .cpu(|init| {
            Ok(KernelBox::new(VocabRemapping {
                offset: size(init, "new_vocab_offset")?,
                count: size(init, "num_new_vocab")?,
                old_size: init.int("old_vocab_size")?,
            }))
        });
    c.op("LoadAndRemapMatrix")
        .doc("A matrix of a checkpoint with its rows and columns in another order.")
        .input("ckpt_path: string")
        .input("old_tensor_name: string")
        .input("row_remapping: int64")
        .input("col_remapping: int64")
        .input("initializing_values: float")
        .output("output_matrix: float")
        .attr("num_rows: int >= 0")
        .attr("num_cols: int >= 1")
        .attr("max_rows_in_memory: int = -1")
        .stateful()
        .does_io()
        .shape(|c| {
            let size = |name: &str| Ok::<_, Error>(usize::try_from(c.attrs.int(name)?).ok());
            Ok(vec![PartialShape::new([size("num_rows")?, size("num_cols")?])])
        })
        .cpu(|init| {
            Ok(KernelBox::new(RemapMatrix {
                rows: size(init, "num_rows")?,
                columns: size(init, "num_cols")?,
            }))
        });
    c.no_gradient(&["GenerateVocabRemapping", "LoadAndRemapMatrix"]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::bundle::BundleWriter;
    use crate::testing::check;

    #[test]
    fn words_and_weights_move_to_a_new_vocabulary() {
        let dir = std::env::temp_dir().join(format!("ferroflow-remap-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = |name: &str| dir.join(name).to_string_lossy().into_owned();
        std::fs::write(file("old"), "a\nb\nc\n").unwrap();
        std::fs::write(file("new"), "x\nc\na\nnew\n").unwrap();
        let map = |offset: i64, count: i64| {
            check("GenerateVocabRemapping")
                .attr("new_vocab_offset", offset)
                .attr("num_new_vocab", count)
                .input(Tensor::string(file("new")))
                .input(Tensor::string(file("old")))
        };
        let out = map(1, 3).run().unwrap();
        assert_eq!(out[0], Tensor::vector(&[2i64, 0, -1]));
        assert_eq!(out[1], Tensor::scalar(2i32));
        map(3, 3).fails(Code::InvalidArgument, "has 4 lines, but 6 were asked for");

        let mut bundle = BundleWriter::create(&file("ckpt")).unwrap();
        let weights: Vec<f32> = (0..6).map(|i| i as f32).collect();
        bundle.add("w", &Tensor::from_slice([3, 2], &weights).unwrap()).unwrap();
        bundle.finish().unwrap();
        let load = |initial: &[f32]| {
            check("LoadAndRemapMatrix")
                .attr("num_rows", 3i64)
                .attr("num_cols", 2i64)
                .input(Tensor::string(file("ckpt")))
                .input(Tensor::string("w"))
                .input(out[0].clone())
                .input(Tensor::vector(&[1i64, 0]))
                .input(Tensor::vector(initial))
        };
        let moved = [5f32, 4., 1., 0., 8., 9.];
        load(&[8., 9.]).gives(Tensor::from_slice([3, 2], &moved).unwrap());
        load(&[8.]).fails(Code::InvalidArgument, "initializing_values contained 1 elements");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
