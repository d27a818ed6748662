//! Filling tables, from tensors and from text files.

use super::ops::{Column, on, on_table};
use super::store::{Kind, Table};
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::{CancelToken, Reservation};
use ferroflow_op_kit::file::read_line;
use ferroflow_op_kit::handle::Seen;
use std::path::Path;

/// Only tables that are filled once use this.
pub fn check_fixed(table: &Table) -> Result<()> {
    ensure!(
        table.spec.kind == Kind::Fixed,
        InvalidArgument,
        "Table {} is not initializable",
        table.name
    );
    Ok(())
}

fn initialize(table: &Table, ctx: &mut Ctx<'_>) -> Result<()> {
    check_fixed(table)?;
    let (keys, values) = (ctx.input(1)?, ctx.input(2)?);
    for (name, t) in [("Keys", keys), ("Values", values)] {
        ensure!(
            t.rank() == 1,
            InvalidArgument,
            "{name} must be a vector, but received shape{}",
            t.shape()
        );
    }
    ensure!(
        keys.elements() == values.elements(),
        InvalidArgument,
        "Keys and values must have the same size {} vs {}",
        keys.elements(),
        values.elements()
    );
    ensure!(keys.elements() > 0, InvalidArgument, "keys and values cannot be empty tensors.");
    table.replace(keys, values)
}

/// How a text file is read.
struct Text {
    seen: Seen<Table>,
    /// -2: the whole line, -1: its number, else a column.
    key: i64,
    value: i64,
    /// -1: all lines.
    size: i64,
    delimiter: u8,
    /// Added to line numbers.
    offset: i64,
}

fn from_text(init: &KernelInit<'_>) -> Result<KernelBox> {
    let delimiter = init.bytes("delimiter")?;
    let &[delimiter] = &delimiter[..] else {
        bail!(InvalidArgument, "delimiter should be only 1 char");
    };
    Ok(KernelBox::new(Text {
        seen: Seen::new(),
        key: init.int("key_index")?,
        value: init.int("value_index")?,
        size: init.int("vocab_size")?,
        delimiter,
        offset: init.int("offset")?,
    }))
}

impl Kernel for Text {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let handle = ctx.take_value(0)?;
        let table = self.seen.find(&ctx.step().resources, &handle)?;
        check_fixed(&table)?;
        let file = ctx.input(1)?;
        ensure!(
            file.elements() == 1,
            InvalidArgument,
            "filename should be a single string, but got {}",
            file.shape()
        );
        let file = String::from_utf8_lossy(file.scalar_string()?).into_owned();
        ensure!(!file.is_empty(), InvalidArgument, "filename cannot be empty.");
        let (keys, values) = self.read(&file, &ctx.step().cancel)?;
        table.replace(&parse(table.spec.key, keys)?, &parse(table.spec.value, values)?)
    }
}

impl Text {
    fn read(&self, file: &str, cancel: &CancelToken) -> Result<(Vec<Bytes>, Vec<Bytes>)> {
        let opened = ferroflow_core::files::open(Path::new(file)).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => err!(NotFound, "{file}; No such file or directory"),
            _ => err!(Unknown, "{file}; {e}"),
        })?;
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        let mut from = std::io::BufReader::new(opened);
        let mut counted = Reservation::default();
        while self.size < 0 || (keys.len() as i64) < self.size {
            cancel.check()?;
            let Some(mut line) = read_line(file, &mut from, &mut counted)? else { break };
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            // Texts of keys and values are counted where they are kept.
            counted.grow(2 * size_of::<Bytes>())?;
            let (line, number) = (Bytes::from(line), keys.len() as i64);
            keys.push(self.column(&line, number, self.key, file)?);
            values.push(self.column(&line, number, self.value, file)?);
        }
        ensure!(
            self.size < 0 || self.size == keys.len() as i64,
            InvalidArgument,
            "Invalid vocab_size in {file}: expected {} but got {}",
            self.size,
            keys.len()
        );
        Ok((keys, values))
    }

    fn column(&self, line: &Bytes, number: i64, which: i64, file: &str) -> Result<Bytes> {
        let Ok(column) = usize::try_from(which) else {
            let number = || number.wrapping_add(self.offset).to_string();
            return Ok(if which == -1 { number().into() } else { line.clone() });
        };
        let fields = || line.split(|&b| b == self.delimiter);
        match fields().nth(column) {
            Some(field) => Ok(line.slice_ref(field)),
            None => bail!(
                InvalidArgument,
                "Invalid number of columns in {file} line {number} ({}) : expected at least {} got \
                 {}",
                String::from_utf8_lossy(line),
                column + 1,
                fields().count()
            ),
        }
    }
}

/// Texts as a tensor of some dtype.
fn parse(dtype: DType, texts: Vec<Bytes>) -> Result<Tensor> {
    fn numbers<T: Element + std::str::FromStr>(texts: &[Bytes]) -> Result<Tensor> {
        let mut out = Vec::with_capacity(texts.len());
        for (line, text) in texts.iter().enumerate() {
            let parsed = std::str::from_utf8(text).ok().and_then(|s| s.trim().parse::<T>().ok());
            match parsed {
                Some(x) => out.push(x),
                None => bail!(
                    InvalidArgument,
                    "Field {} in line {line} is not a valid {}.",
                    String::from_utf8_lossy(text),
                    T::DTYPE
                ),
            }
        }
        Ok(Tensor::vector(&out))
    }
    match dtype {
        DType::String => Tensor::from_strings([texts.len()], texts),
        DType::Int32 => numbers::<i32>(&texts),
        DType::Int64 => numbers::<i64>(&texts),
        DType::Float => numbers::<f32>(&texts),
        DType::Double => numbers::<f64>(&texts),
        _ => bail!(InvalidArgument, "Data type {dtype} not supported."),
    }
}

pub(crate) fn register(c: &mut Catalog) {
    for version in ["", "V2"] {
        on(c, "InitializeTable", version, "Fills a table, which can be done once.")
            .input("keys: Tkey")
            .input("values: Tval")
            .attr("Tkey: type")
            .attr("Tval: type")
            .shape(shape::unknown)
            .cpu(on_table(&[Column::Key, Column::Value], &[], initialize));
        on(c, "InitializeTableFromTextFile", version, "Fills a table from a text file.")
            .input("filename: string")
            .attr("key_index: int >= -2")
            .attr("value_index: int >= -2")
            .attr("vocab_size: int >= -1 = -1")
            .attr("delimiter: string = '\t'")
            .attr("offset: int = 0")
            .shape(shape::unknown)
            .does_io()
            .cpu(from_text);
    }
    c.no_gradient(&[
        "InitializeTable",
        "InitializeTableFromTextFile",
        "InitializeTableFromTextFileV2",
        "InitializeTableV2",
    ]);
}

#[cfg(test)]
mod tests {
    use super::super::ops::tests::Fixture;
    use super::*;
    use crate::testing::Check;

    fn table(version: &'static str) -> Fixture {
        Fixture::new("HashTable", version, DType::String, DType::Int64, |c| c)
    }

    fn strings(texts: &[&'static str]) -> Tensor {
        let texts: Vec<Bytes> = texts.iter().map(|&s| s.into()).collect();
        Tensor::from_strings([texts.len()], texts).unwrap()
    }

    #[test]
    fn a_fixed_table_is_filled_once() {
        for version in ["", "V2"] {
            let t = table(version);
            let fill = |keys: &[&'static str], values: &[i64]| -> Check<'static> {
                t.on("InitializeTable").input(strings(keys)).input(Tensor::vector(values))
            };
            let find = |keys: &[&'static str]| t.find(strings(keys), Tensor::scalar(-1i64));
            find(&["a"]).fails(Code::FailedPrecondition, "Table not initialized.");
            t.has_size(0);
            fill(&["a", "a"], &[1, 2]).fails(
                Code::FailedPrecondition,
                "HashTable has different value for same key. Key a has 1 and trying to add value 2",
            );
            fill(&["a", "b"], &[1])
                .fails(Code::InvalidArgument, "Keys and values must have the same size 2 vs 1");
            fill(&["a", "b"], &[1, 2]).run().unwrap();
            find(&["a", "z"]).gives(Tensor::vector(&[1i64, -1]));
            fill(&["a", "b"], &[1, 2]).run().unwrap();
            fill(&["a"], &[1]).fails(
                Code::FailedPrecondition,
                "Table was already initialized with different data.",
            );
            t.insert(strings(&["a"]), Tensor::vector(&[1i64]))
                .fails(Code::Unimplemented, "Insert not supported");
            t.find(strings(&["a"]), Tensor::vector(&[1i64]))
                .fails(Code::InvalidArgument, "Expected shape [] or [1] for default value");
        }
        let t = Fixture::new("MutableHashTable", "V2", DType::String, DType::Int64, |c| c);
        t.on("InitializeTable")
            .input(strings(&["a"]))
            .input(Tensor::vector(&[1i64]))
            .fails(Code::InvalidArgument, "is not initializable");
    }

    #[test]
    fn text_files_fill_tables() {
        let dir = std::env::temp_dir().join(format!("ferroflow-table-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = |name: &str, text: &str| {
            let path = dir.join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_string()
        };
        let (lines, columns) = (path("lines", "x\ny\r\nz\n"), path("columns", "a 1\nb q\n"));
        let fill = |t: &Fixture, file: &str, key: i64, value: i64| -> Check<'static> {
            t.on("InitializeTableFromTextFile")
                .input(Tensor::string(file.to_string()))
                .attr("key_index", key)
                .attr("value_index", value)
        };
        let t = table("V2");
        fill(&t, &lines, -2, -1).attr("offset", 1).run().unwrap();
        t.find(strings(&["x", "y", "?"]), Tensor::scalar(-1i64))
            .gives(Tensor::vector(&[1i64, 2, -1]));
        let t = table("");
        fill(&t, &lines, -2, -1).attr("vocab_size", 2).run().unwrap();
        t.has_size(2);
        let t = Fixture::new("HashTable", "V2", DType::Int64, DType::String, |c| c);
        fill(&t, &lines, -1, -2).run().unwrap();
        t.find(Tensor::vector(&[2i64, 9]), Tensor::string("?")).gives(strings(&["z", "?"]));
        let t = table("V2");
        let refused = |check: Check<'static>, text: &str| check.fails(Code::InvalidArgument, text);
        refused(
            fill(&t, &columns, 0, 1).attr("delimiter", " "),
            "Field q in line 1 is not a valid int64.",
        );
        refused(fill(&t, &lines, -2, -1).attr("vocab_size", 9), "expected 9 but got 3");
        refused(fill(&t, &lines, 0, 1), "line 0 (x) : expected at least 2 got 1");
        fill(&t, &format!("{lines}.not"), -2, -1)
            .fails(Code::NotFound, ".not; No such file or directory");
        fill(&t, &columns, 0, 1).attr("delimiter", " ").attr("vocab_size", 1).run().unwrap();
        t.find(strings(&["a"]), Tensor::scalar(-1i64)).gives(Tensor::vector(&[1i64]));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
