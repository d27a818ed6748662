//! DecodeCSV.

use super::delimited::{Delimited, Source, columns};
use crate::prelude::*;
use crate::string::{parse_f32, parse_f64, parse_i64};
use bytes::Bytes;
use ferroflow_core::Reservation;

struct DecodeCsv {
    types: Vec<DType>,
    format: Delimited,
    /// Columns that are wanted, in order; all when empty.
    selected: Vec<usize>,
}

impl DecodeCsv {
    fn new(init: &KernelInit<'_>) -> Result<DecodeCsv> {
        let (types, delimiter) = (init.dtypes("OUT_TYPE")?, init.bytes("field_delim")?);
        let (has_quotes, na) = (init.bool("use_quote_delim")?, init.bytes("na_value")?);
        let format = Delimited::new(&delimiter, has_quotes, na, Source::Tensor)?;
        let selected = columns(&init.ints("select_cols")?, "select_cols")?;
        ensure!(
            selected.is_empty() || selected.len() == types.len(),
            InvalidArgument,
            "select_cols should match output size"
        );
        Ok(DecodeCsv { types, format, selected })
    }

    /// The requested fields of a record.
    fn fields(&self, record: &[u8]) -> Result<Vec<Bytes>> {
        let mut fields = Vec::new();
        if record.is_empty() {
            return Ok(fields);
        }
        self.format.for_each(record, |column, field| {
            if self.selected.is_empty() || self.selected.binary_search(&column).is_ok() {
                fields.push(field);
            }
            Ok(())
        })?;
        Ok(fields)
    }

    /// Column `f` of all records as numbers.
    fn numbers<T: Element>(
        &self,
        default: &Tensor,
        rows: &[Vec<Bytes>],
        f: usize,
        parse: impl Fn(&[u8]) -> Option<T>,
        name: &str,
    ) -> Result<Vec<T>> {
        let default = default.as_slice::<T>()?.first().copied();
        let one = |(r, row): (usize, &Vec<Bytes>)| -> Result<T> {
            let field = &row[f];
            match (self.format.is_missing(field), default) {
                (true, Some(default)) => Ok(default),
                (true, None) => Err(required(f, r)),
                (false, _) => parse(field).ok_or_else(|| {
                    err!(
                        InvalidArgument,
                        "Field {f} in record {r} is not a valid {name}: {}",
                        String::from_utf8_lossy(field)
                    )
                }),
            }
        };
        rows.iter().enumerate().map(one).collect()
    }
}

fn required(field: usize, record: usize) -> Error {
    err!(InvalidArgument, "Field {field} is required but missing in record {record}!")
}

impl Kernel for DecodeCsv {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        for (i, _) in self.types.iter().enumerate() {
            let n = ctx.input(1 + i)?.elements();
            ensure!(
                n <= 1,
                InvalidArgument,
                "There should only be 1 default per field but field {i} has {n}"
            );
        }
        let records = ctx.input(0)?;
        let shape = records.shape().clone();
        let (mut rows, mut counted) =
            (Vec::with_capacity(records.elements()), Reservation::default());
        for (r, record) in records.strings()?.iter().enumerate() {
            let fields = self.fields(record)?;
            ensure!(
                fields.len() == self.types.len(),
                InvalidArgument,
                "Expect {} fields but have {} in record {r}",
                self.types.len(),
                fields.len()
            );
            counted.grow(fields.len() * size_of::<Bytes>())?;
            rows.push(fields);
        }
        for (f, &dtype) in self.types.iter().enumerate() {
            let default = ctx.input(1 + f)?;
            let column = match dtype {
                DType::Float => {
                    Tensor::vector(&self.numbers(default, &rows, f, parse_f32, "float")?)
                }
                DType::Double => {
                    Tensor::vector(&self.numbers(default, &rows, f, parse_f64, "double")?)
                }
                DType::Int32 => {
                    let parse = |s: &[u8]| parse_i64(s).and_then(|x| i32::try_from(x).ok());
                    Tensor::vector(&self.numbers(default, &rows, f, parse, "int32")?)
                }
                DType::Int64 => {
                    Tensor::vector(&self.numbers(default, &rows, f, parse_i64, "int64")?)
                }
                _ => {
                    let default = default.strings()?.first().cloned();
                    let mut texts = Vec::with_capacity(rows.len());
                    for (r, row) in rows.iter().enumerate() {
                        texts.push(match (self.format.is_missing(&row[f]), &default) {
                            (true, Some(default)) => default.clone(),
                            (true, None) => return Err(required(f, r)),
                            (false, _) => row[f].clone(),
                        });
                    }
                    Tensor::from_strings([texts.len()], texts)?
                }
            };
            ctx.set(f, column.into_shape(shape.clone())?)?;
        }
        Ok(())
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("DecodeCSV")
        .doc("The fields of comma-separated records, a tensor for each.")
        .input("records: string")
        .input("record_defaults: OUT_TYPE")
        .output("output: OUT_TYPE")
        .attr("OUT_TYPE: list({float, double, int32, int64, string}) >= 1")
        .attr("field_delim: string = ','")
        .attr("use_quote_delim: bool = true")
        .attr("na_value: string = ''")
        .attr("select_cols: list(int) = []")
        .shape(shape::same_as_input)
        .cpu(|init| Ok(KernelBox::new(DecodeCsv::new(init)?)));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn decode(record: &'static str) -> Check<'static> {
        check("DecodeCSV")
            .input(Tensor::string(record))
            .input(Tensor::vector(&[1.5f32]))
            .input(Tensor::vector(&[7i32]))
            .input(Tensor::from_strings([1], vec!["d".into()]).unwrap())
    }

    fn gives(c: Check<'_>, x: f32, i: i32, s: &'static str) {
        let want = [Tensor::scalar(x), Tensor::scalar(i), Tensor::string(s)];
        assert_eq!(c.run().unwrap(), want);
    }

    #[test]
    fn fields_become_tensors() {
        gives(decode("3.5,4,\"a,b\""), 3.5, 4, "a,b");
        gives(decode("1,2,\"a\"\"b\""), 1.0, 2, "a\"b");
        gives(decode(" 1 , 2 , x "), 1.0, 2, " x ");
        gives(decode(",,"), 1.5, 7, "d");
        gives(decode("NA,2,NA").attr("na_value", "NA"), 1.5, 2, "d");
        gives(decode("1|2|3").attr("field_delim", "|"), 1.0, 2, "3");
        gives(decode("1,2,\"a\"").attr("use_quote_delim", false), 1.0, 2, "\"a\"");
        gives(decode("0,1,2,3").attr("select_cols", vec![0i64, 1, 3]), 0.0, 1, "3");
    }

    #[test]
    fn malformed_records_are_refused() {
        for (record, why) in [
            ("1,2", "Expect 3 fields but have 2 in record 0"),
            ("1,2,3,4", "Expect 3 fields but have 4 in record 0"),
            ("", "Expect 3 fields but have 0 in record 0"),
            ("x,2,3", "Field 0 in record 0 is not a valid float: x"),
            ("1,2.5,3", "Field 1 in record 0 is not a valid int32: 2.5"),
            ("1,2,\"ab", "Quoted field has to end with quote followed by delim or end"),
            ("1,2,a\"b", "Unquoted fields cannot have quotes/CRLFs inside"),
            ("1,2,\"a\"b", "Quote inside a string has to be escaped by another quote"),
        ] {
            decode(record).fails(Code::InvalidArgument, why);
        }
        check("DecodeCSV")
            .input(Tensor::string(",1"))
            .input(Tensor::zeros(DType::Float, [0]).unwrap())
            .input(Tensor::vector(&[7i32]))
            .fails(Code::InvalidArgument, "Field 0 is required but missing in record 0!");
    }
}
