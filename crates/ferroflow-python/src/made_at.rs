//! The place in the user's program that made an operation.

use crate::hooks::hooks;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

pub struct MadeAt {
    pub file: Py<PyAny>,
    pub line: u32,
    pub function: Py<PyAny>,
}

static CURRENT_FRAME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The innermost frame outside this package. Only its position is kept: a frame would keep all its
/// variables alive.
pub fn user_frame(py: Python<'_>) -> PyResult<Option<MadeAt>> {
    let Ok(hooks) = hooks(py) else { return Ok(None) };
    let current = CURRENT_FRAME
        .get_or_try_init(py, || PyResult::Ok(py.import("sys")?.getattr("_getframe")?.unbind()))?;
    let Ok(mut frame) = current.bind(py).call0() else { return Ok(None) };
    loop {
        let code = frame.getattr(intern!(py, "f_code"))?;
        let file = code.getattr(intern!(py, "co_filename"))?;
        let ours = file.downcast::<PyString>()?.to_cow()?.starts_with(&hooks.package);
        if !ours {
            return Ok(Some(MadeAt {
                line: frame.getattr(intern!(py, "f_lineno"))?.extract().unwrap_or(0),
                function: code.getattr(intern!(py, "co_name"))?.unbind(),
                file: file.unbind(),
            }));
        }
        frame = frame.getattr(intern!(py, "f_back"))?;
        if frame.is_none() {
            return Ok(None);
        }
    }
}
