//! SqlDataset: the rows of a query of a SQLite database.

use super::dataset::*;
use super::scope::Scope;
use crate::prelude::*;
use ferroflow_core::CancelToken;
use ferroflow_op_kit::sqlite::SqliteQuery;

struct Rows {
    file: String,
    query: String,
    dtypes: Vec<DType>,
}

impl Dataset for Rows {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        let (file, text, dtypes) = (self.file.clone(), self.query.clone(), self.dtypes.clone());
        let cancel = scope.cancel().clone();
        let mut query = None;
        Ok(Elements::from_files(move || {
            let query = match &mut query {
                Some(query) => query,
                none => none.insert(open(&file, &text, dtypes.len(), cancel.clone())?),
            };
            if !query.advance()? {
                return Ok(None);
            }
            let values = dtypes.iter().enumerate().map(|(i, &dtype)| value(query, i, dtype));
            values.collect::<Result<Tuple>>().map(Some)
        }))
    }
}

fn open(file: &str, text: &str, columns: usize, cancel: CancelToken) -> Result<SqliteQuery> {
    let query = SqliteQuery::open(file, text, cancel)?;
    ensure!(
        query.columns() == columns,
        InvalidArgument,
        "The number of columns in query ({}) must match the number of elements in output_types \
         ({columns}).",
        query.columns()
    );
    Ok(query)
}

/// Column `i` of the current row. Integers that do not fit wrap, as in TensorFlow.
fn value(query: &mut SqliteQuery, i: usize, dtype: DType) -> Result<Tensor> {
    Ok(match dtype {
        DType::String => Tensor::string(query.bytes(i)),
        DType::Int8 => Tensor::scalar(query.int(i) as i8),
        DType::Int16 => Tensor::scalar(query.int(i) as i16),
        DType::Int32 => Tensor::scalar(query.int(i) as i32),
        DType::Int64 => Tensor::scalar(query.int(i)),
        DType::UInt8 => Tensor::scalar(query.int(i) as u8),
        DType::UInt16 => Tensor::scalar(query.int(i) as u16),
        DType::Bool => Tensor::scalar(query.int(i) != 0),
        DType::Double => Tensor::scalar(query.double(i)),
        other => bail!(Internal, "a column cannot be {other}"),
    })
}

const DTYPES: [DType; 9] = [
    DType::String,
    DType::Int8,
    DType::Int16,
    DType::Int32,
    DType::Int64,
    DType::UInt8,
    DType::UInt16,
    DType::Bool,
    DType::Double,
];

pub(crate) fn register(c: &mut Catalog) {
    for op in ["SqlDataset", "ExperimentalSqlDataset"] {
        c.op(op)
            .doc("A dataset of the rows of a query of a SQLite database.")
            .input("driver_name: string")
            .input("data_source_name: string")
            .input("query: string")
            .makes_dataset()
            .element_types()
            .stateful()
            .cpu(|init| {
                let types = ElementTypes::from_attrs(init)?;
                ensure!(
                    types.dtypes.iter().all(|d| DTYPES.contains(d)),
                    InvalidArgument,
                    "Each element of `output_types_` must be one of: DT_STRING, DT_INT8, \
                     DT_INT16, DT_INT32, DT_INT64, DT_UINT8, DT_UINT16, DT_BOOL, DT_DOUBLE "
                );
                ensure!(
                    types.shapes.iter().all(|s| s.rank() == Some(0)),
                    InvalidArgument,
                    "Each element of `output_shapes_` must be a scalar."
                );
                makes(init, move |ctx| {
                    let driver = text(ctx, 0, "driver_name")?;
                    ensure!(
                        driver == "sqlite",
                        InvalidArgument,
                        "The database type, {driver}, is not supported by SqlDataset. The set of \
                         supported databases is: {{'sqlite'}}."
                    );
                    Ok(Rows {
                        file: text(ctx, 1, "data_source_name")?,
                        query: text(ctx, 2, "query")?,
                        dtypes: types.dtypes.clone(),
                    })
                })
            });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::testing::*;

    /// A database of one table: t(i INTEGER, x REAL, s TEXT) with (1, 0.5, 'one'),
    /// (-300, 2.0, NULL).
    const DATABASE: &[u8] = include_bytes!("../../tests/data/rows.sqlite");

    fn rows(file: &str, query: &str, dtypes: &[DType]) -> Result<Vec<Tuple>> {
        let shapes = vec![PartialShape::scalar(); dtypes.len()];
        let op = crate::testing::check("SqlDataset")
            .attr("output_types", dtypes.to_vec())
            .attr("output_shapes", shapes)
            .input(Tensor::string("sqlite"))
            .input(Tensor::string(file.to_string()))
            .input(Tensor::string(query.to_string()));
        elements(&made(op))
    }

    /// The rows, or none if the host has no SQLite, which the error must say.
    fn try_rows(file: &str, query: &str, dtypes: &[DType]) -> Option<Result<Vec<Tuple>>> {
        match rows(file, query, dtypes) {
            Err(e) if e.code() == Code::FailedPrecondition => {
                assert!(e.message().contains("install libsqlite3"), "{e}");
                None
            }
            result => Some(result),
        }
    }

    #[test]
    fn rows_of_a_query_are_elements() {
        let dir = std::env::temp_dir().join(format!("ferroflow-sql-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("rows.sqlite");
        std::fs::write(&file, DATABASE).unwrap();
        let file = file.to_str().unwrap();
        let types = [DType::Int64, DType::UInt8, DType::Double, DType::String, DType::Bool];
        let query = "SELECT i, i, x, s, i > 0 FROM t ORDER BY i DESC";
        let Some(found) = try_rows(file, query, &types) else { return };
        let row = |i: i64, x: f64, s: &'static str, b: bool| {
            vec![
                Tensor::scalar(i),
                Tensor::scalar(i as u8),
                Tensor::scalar(x),
                Tensor::string(s),
                Tensor::scalar(b),
            ]
        };
        let want = [row(1, 0.5, "one", true), row(-300, 2.0, "", false)];
        assert_eq!(found.unwrap(), want);
        let fails = |query: &str, code, text: &str| {
            let error = rows(file, query, &[DType::Int64]).unwrap_err();
            assert_eq!(error.code(), code, "{error}");
            assert!(error.message().contains(text), "{error}");
        };
        fails("SELECT i, x FROM t", Code::InvalidArgument, "number of columns in query (2)");
        fails("SELECT absent FROM t", Code::InvalidArgument, "no such column");
        // Nothing is written, and no other file is opened.
        for statement in ["DELETE FROM t", "ATTACH 'other.sqlite' AS o", "PRAGMA user_version = 3"]
        {
            fails(statement, Code::InvalidArgument, "not authorized");
        }
        let into = format!("VACUUM INTO '{}/copy.sqlite'", dir.display());
        assert!(rows(file, &into, &[DType::Int64]).is_err());
        assert!(!dir.join("copy.sqlite").exists());
        std::fs::write(dir.join("broken"), vec![7; 4096]).unwrap();
        let broken = dir.join("broken");
        let error = rows(broken.to_str().unwrap(), "SELECT 1 FROM t", &[DType::Int64]).unwrap_err();
        assert_eq!(error.code(), Code::DataLoss, "{error}");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_query_without_end_is_cancelled() {
        let file = std::env::temp_dir().join(format!("ferroflow-endless-{}", std::process::id()));
        std::fs::write(&file, DATABASE).unwrap();
        let text = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) \
                    SELECT max(i) FROM n";
        let cancel = CancelToken::new();
        let opened = SqliteQuery::open(file.to_str().unwrap(), text, cancel.clone());
        std::fs::remove_file(&file).unwrap();
        let Ok(mut query) = opened else { return };
        let waiter = std::thread::spawn(move || query.advance());
        cancel.cancel(err!(Cancelled, "enough"));
        assert_eq!(waiter.join().unwrap().unwrap_err().code(), Code::Cancelled);
    }
}
