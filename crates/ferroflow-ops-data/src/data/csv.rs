//! CSVDataset: the records of comma-separated files.

use super::dataset::*;
use super::scope::Scope;
use crate::io::records::Input;
use crate::parse::delimited::{Delimited, Source, columns};
use crate::prelude::*;
use crate::string::{parse_f32, parse_f64, parse_i64};
use bytes::Bytes;
use ferroflow_op_kit::tfrecord::RecordCompression;

struct Csv {
    files: Arc<Vec<String>>,
    compression: RecordCompression,
    format: Arc<Format>,
}

/// The format of records and the requested features.
struct Format {
    has_header: bool,
    fields: Delimited,
    columns: Columns,
    /// The default of a column, if values may be missing.
    defaults: Vec<Tensor>,
}

enum Columns {
    All,
    Only(Vec<usize>),
    AllBut(Vec<usize>),
}

impl Dataset for Csv {
    fn iterate(&self, _: &Scope) -> Result<Elements> {
        let (files, compression, format) =
            (self.files.clone(), self.compression, self.format.clone());
        let (mut at, mut open): (usize, Option<Input>) = (0, None);
        Ok(Elements::from_files(move || {
            while let Some(name) = files.get(at) {
                let input = match &mut open {
                    Some(input) => input,
                    None => {
                        let mut input = Input::open(name, compression)?;
                        if format.has_header && input.raw_line()?.is_none() {
                            bail!(InvalidArgument, "Can't read header of file");
                        }
                        open.insert(input)
                    }
                };
                match format.record(input)? {
                    Some(record) => return format.parse(&record).map(Some),
                    None => (open, at) = (None, at + 1),
                }
            }
            Ok(None)
        }))
    }
}

impl Format {
    /// The next record without its end; a quoted field may go over several lines.
    fn record(&self, input: &mut Input) -> Result<Option<Vec<u8>>> {
        let Some(mut record) = input.raw_line()? else { return Ok(None) };
        let is_open = |r: &[u8]| r.iter().filter(|&&b| b == b'"').count() % 2 == 1;
        while self.fields.has_quotes && is_open(&record) {
            match input.raw_line()? {
                Some(more) => record.extend(more),
                None => bail!(
                    InvalidArgument,
                    "Reached end of file without closing quoted field in record"
                ),
            }
        }
        for end in [b'\n', b'\r'] {
            if record.last() == Some(&end) {
                record.pop();
            }
        }
        Ok(Some(record))
    }

    fn is_wanted(&self, column: usize) -> bool {
        match &self.columns {
            Columns::All => true,
            Columns::Only(these) => these.binary_search(&column).is_ok(),
            Columns::AllBut(these) => these.binary_search(&column).is_err(),
        }
    }

    fn parse(&self, record: &[u8]) -> Result<Tuple> {
        let wanted = self.defaults.len();
        let mut out = Tuple::new();
        self.fields.for_each(record, |column, field| {
            if self.is_wanted(column) {
                let default = self.defaults.get(out.len()).ok_or_else(|| {
                    err!(InvalidArgument, "Expect {wanted} fields but have more in record")
                })?;
                out.push(self.value(&field, default, out.len())?);
            }
            Ok(())
        })?;
        ensure!(
            out.len() == wanted,
            InvalidArgument,
            "Expect {wanted} fields but have {} in record",
            out.len()
        );
        Ok(out)
    }

    /// A field as a scalar of its column's type.
    fn value(&self, field: &Bytes, default: &Tensor, i: usize) -> Result<Tensor> {
        if self.fields.is_missing(field) {
            ensure!(
                default.elements() == 1,
                InvalidArgument,
                "Field {i} is required but missing in record!"
            );
            return default.reshape(Shape::scalar());
        }
        let parsed = match default.dtype() {
            DType::Float => parse_f32(field).map(Tensor::scalar),
            DType::Double => parse_f64(field).map(Tensor::scalar),
            DType::Int64 => parse_i64(field).map(Tensor::scalar),
            DType::Int32 => {
                parse_i64(field).and_then(|x| i32::try_from(x).ok()).map(Tensor::scalar)
            }
            _ => Some(Tensor::string(field.clone())),
        };
        parsed.ok_or_else(|| {
            err!(
                InvalidArgument,
                "Field {i} in record is not a valid {}: {}",
                default.dtype(),
                String::from_utf8_lossy(field)
            )
        })
    }
}

fn csv(init: &KernelInit<'_>) -> Result<KernelBox> {
    let outputs = init.dtypes("output_types")?.len();
    makes(init, move |ctx| {
        let names = ctx.input(0)?;
        ensure!(names.rank() <= 1, InvalidArgument, "`filenames` must be a scalar or a vector.");
        let name = |s: &Bytes| String::from_utf8_lossy(s).into_owned();
        let files = Arc::new(names.strings()?.iter().map(name).collect());
        let compression = RecordCompression::from_name(&text(ctx, 1, "compression_type")?)
            .map_err(|_| err!(InvalidArgument, "Unsupported compression_type: "))?;
        let delimiter = text(ctx, 4, "field_delim")?;
        let na = Bytes::from(text(ctx, 6, "na_value")?);
        let has_quotes = scalar(ctx, 5, "use_quote_delim")?;
        let fields = Delimited::new(delimiter.as_bytes(), has_quotes, na, Source::File)?;
        let only = columns(&ctx.input(7)?.to_indices()?, "select_cols")?;
        let all_but = match 8 + outputs {
            last if last < ctx.num_inputs() => {
                columns(&ctx.input(last)?.to_indices()?, "exclude_cols")?
            }
            _ => Vec::new(),
        };
        ensure!(
            only.is_empty() || all_but.is_empty(),
            InvalidArgument,
            "Either select_cols or exclude_cols should be empty"
        );
        ensure!(
            only.is_empty() || only.len() == outputs,
            InvalidArgument,
            "select_cols should match output size"
        );
        let mut defaults = Vec::with_capacity(outputs);
        for i in 0..outputs {
            let default = ctx.input(8 + i)?;
            ensure!(
                default.rank() <= 1,
                InvalidArgument,
                "Each record default should be at most rank 1"
            );
            ensure!(
                default.elements() < 2,
                InvalidArgument,
                "There should only be 1 default per field but field {i} has {}",
                default.elements()
            );
            defaults.push(default.clone());
        }
        let format = Arc::new(Format {
            has_header: scalar(ctx, 3, "header")?,
            fields,
            columns: match (only.is_empty(), all_but.is_empty()) {
                (true, true) => Columns::All,
                (false, _) => Columns::Only(only),
                _ => Columns::AllBut(all_but),
            },
            defaults,
        });
        Ok(Csv { files, compression, format })
    })
}

pub(crate) fn register(c: &mut Catalog) {
    for op in ["CSVDataset", "ExperimentalCSVDataset", "CSVDatasetV2"] {
        let b = c
            .op(op)
            .doc("A dataset of the records of comma-separated files.")
            .input("filenames: string")
            .input("compression_type: string")
            .input("buffer_size: int64")
            .input("header: bool")
            .input("field_delim: string")
            .input("use_quote_delim: bool")
            .input("na_value: string")
            .input("select_cols: int64")
            .input("record_defaults: output_types");
        let b = if op.ends_with("V2") { b.input("exclude_cols: int64") } else { b };
        drop(
            b.makes_dataset()
                .attr("output_types: list({float, double, int32, int64, string}) >= 1")
                .attr("output_shapes: list(shape) >= 1")
                .stateful()
                .cpu(csv),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(has_quotes: bool) -> Format {
        Format {
            has_header: false,
            fields: Delimited {
                delimiter: b',',
                has_quotes,
                na: Bytes::from_static(b"NA"),
                of: Source::File,
            },
            columns: Columns::AllBut(vec![1]),
            defaults: vec![Tensor::vector::<i32>(&[]), Tensor::string("-")],
        }
    }

    #[test]
    fn fields_are_quoted_missing_or_wrong() {
        let parse = |record: &str| format(true).parse(record.as_bytes());
        let text = |record: &str| parse(record).unwrap()[1].scalar_string().unwrap().clone();
        assert_eq!(parse("7,x,\"a, \"\"b\"\"\"").unwrap()[0], Tensor::scalar(7i32));
        assert_eq!(text("7,x,\"a, \"\"b\"\"\""), "a, \"b\"");
        assert_eq!(text("7,x,NA"), "-");
        assert_eq!(text("7,x,"), "-");
        for (record, why) in [
            ("NA,x,y", "Field 0 is required but missing in record!"),
            ("z,x,y", "Field 0 in record is not a valid int32: z"),
            ("1,x", "Expect 2 fields but have 1 in record"),
            ("1,x,y,z", "Expect 2 fields but have more in record"),
            ("1,x,y\"", "Unquoted fields cannot have quotes inside"),
            ("1,x,\"y\"z", "Quote inside a string has to be escaped by another quote"),
        ] {
            assert_eq!(parse(record).unwrap_err().message(), why);
        }
        let unquoted = format(false).parse(b"1,x,\"y").unwrap();
        assert_eq!(unquoted[1], Tensor::string("\"y"));
    }
}
