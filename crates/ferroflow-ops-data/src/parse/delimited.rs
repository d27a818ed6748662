//! Records of fields between delimiters, some of them in quotes: what DecodeCSV and CSVDataset
//! share.

use crate::prelude::*;
use bytes::Bytes;

/// How fields are written.
pub(crate) struct Delimited {
    pub delimiter: u8,
    pub has_quotes: bool,
    /// A field with this text has no value.
    pub na: Bytes,
    pub of: Source,
}

/// The source of records. It determines their syntax and the wording of errors.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// A tensor of records.
    Tensor,
    /// A file, from which records were cut.
    File,
}

impl Delimited {
    pub fn new(delimiter: &[u8], has_quotes: bool, na: Bytes, of: Source) -> Result<Delimited> {
        let &[delimiter] = delimiter else {
            bail!(InvalidArgument, "field_delim should be only 1 char");
        };
        Ok(Delimited { delimiter, has_quotes, na, of })
    }

    /// Calls `each` with every field and the number of its column.
    pub fn for_each(
        &self,
        record: &[u8],
        mut each: impl FnMut(usize, Bytes) -> Result<()>,
    ) -> Result<()> {
        let (mut at, mut column) = (0, 0);
        loop {
            let (field, next) = match self.has_quotes && record.get(at) == Some(&b'"') {
                true => self.quoted(record, at + 1)?,
                false => self.bare(record, at)?,
            };
            each(column, field)?;
            column += 1;
            match record.get(next) {
                None => return Ok(()),
                // A delimiter at the very end begins one more, empty field.
                Some(_) => at = next + 1,
            }
        }
    }

    /// Whether a field has no value.
    pub fn is_missing(&self, field: &Bytes) -> bool {
        field.is_empty() || *field == self.na
    }

    /// The field from `at`, and where the delimiter behind it is.
    fn bare(&self, record: &[u8], at: usize) -> Result<(Bytes, usize)> {
        let rest = record.get(at..).unwrap_or_default();
        let len = rest.iter().position(|&b| b == self.delimiter).unwrap_or(rest.len());
        let (forbidden, names): (&[u8], &str) = match self.of {
            Source::Tensor => (b"\"\r\n", "quotes/CRLFs"),
            Source::File => (b"\"", "quotes"),
        };
        ensure!(
            !self.has_quotes || !rest[..len].iter().any(|b| forbidden.contains(b)),
            InvalidArgument,
            "Unquoted fields cannot have {names} inside"
        );
        Ok((Bytes::copy_from_slice(&rest[..len]), at + len))
    }

    /// The field whose quote opened before `at`; a doubled quote means one.
    fn quoted(&self, record: &[u8], mut at: usize) -> Result<(Bytes, usize)> {
        let mut field = Vec::new();
        loop {
            match (record.get(at), record.get(at + 1)) {
                (None, _) => match self.of {
                    Source::Tensor => bail!(
                        InvalidArgument,
                        "Quoted field has to end with quote followed by delim or end"
                    ),
                    Source::File => bail!(
                        InvalidArgument,
                        "Reached end of file without closing quoted field in record"
                    ),
                },
                (Some(b'"'), Some(b'"')) => {
                    field.push(b'"');
                    at += 2;
                }
                (Some(b'"'), after) => {
                    ensure!(
                        after.is_none_or(|&b| b == self.delimiter),
                        InvalidArgument,
                        "Quote inside a string has to be escaped by another quote"
                    );
                    return Ok((Bytes::from(field), at + 1));
                }
                (Some(&b), _) => {
                    field.push(b);
                    at += 1;
                }
            }
        }
    }
}

/// Column numbers, which must grow.
pub(crate) fn columns(numbers: &[i64], name: &str) -> Result<Vec<usize>> {
    let mut all: Vec<usize> = Vec::with_capacity(numbers.len());
    for &column in numbers {
        let Ok(column) = usize::try_from(column) else {
            bail!(InvalidArgument, "{name} should be non-negative indices");
        };
        ensure!(
            all.last().is_none_or(|&last| last < column),
            InvalidArgument,
            "{name} should be strictly increasing indices"
        );
        all.push(column);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(record: &str, of: Source) -> Result<Vec<String>> {
        let format = Delimited::new(b",", true, Bytes::new(), of)?;
        let mut all = Vec::new();
        format.for_each(record.as_bytes(), |_, field| {
            all.push(String::from_utf8_lossy(&field).into_owned());
            Ok(())
        })?;
        Ok(all)
    }

    #[test]
    fn quotes_protect_delimiters_and_themselves() {
        for of in [Source::Tensor, Source::File] {
            let got = fields("a,\"b,c\",\"d\"\"e\",", of).unwrap();
            assert_eq!(got, ["a", "b,c", "d\"e", ""]);
            assert!(fields("a\"b", of).is_err());
            assert!(fields("\"a", of).is_err());
            assert!(fields("\"a\"b", of).is_err());
        }
        // Where a record of a file ends is known already.
        assert!(fields("a\rb", Source::File).is_ok());
        assert!(fields("a\rb", Source::Tensor).is_err());
    }

    #[test]
    fn columns_grow() {
        assert_eq!(columns(&[0, 2], "these").unwrap(), [0, 2]);
        assert!(columns(&[2, 2], "these").is_err());
        assert!(columns(&[-1], "these").is_err());
    }
}
