//! The native half of the Python package `satf`: a thin mirror of the library. What people call is in `python/satf`; this module takes
//! what that made ready, calls the library without holding the interpreter, and gives Arrow tables and plain values back.
//!
//! | file | what |
//! |---|---|
//! | `work` | threads, a pool per process, requests to stop, progress, panics |
//! | `failure` | errors of the library as exceptions of the package |
//! | `plain` | values of Python as JSON and back |
//! | `columns` | NumPy arrays and Python lists as Arrow columns |
//! | `log` | a log from frames, columns and files |
//! | `table` | a table on its way out |
//! | `histories` | histories to recommend for |
//! | `model` | a fitted model |
//! | `training_set` | what a model of one's own learns from |
//! | `experiment`, `own_model`, `comparison`, `search` | experiments |
//! | `command_line` | the program `satf` |

use pyo3::prelude::*;

mod columns;
mod command_line;
mod comparison;
mod experiment;
mod failure;
mod histories;
mod log;
mod model;
mod own_model;
mod plain;
mod search;
mod table;
mod training_set;
mod work;

/// The native module.
#[pymodule]
mod _satf {
    #[pymodule_export]
    use super::command_line::run_command_line;
    #[pymodule_export]
    use super::comparison::compare_files;
    #[pymodule_export]
    use super::experiment::{Cut, Run, cut, order_matters};
    #[pymodule_export]
    use super::histories::Histories;
    #[pymodule_export]
    use super::log::{Log, choose_columns, generate_shape, generate_shop};
    #[pymodule_export]
    use super::model::{Model, default_model, fit, models};
    #[pymodule_export]
    use super::search::tune;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::training_set::TrainingSet;
    #[pymodule_export]
    use super::work::Work;
    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
