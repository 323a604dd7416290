//! The native half of the Python package `satf`: a thin mirror of the library. What people call is in `python/satf`; this module takes
//! what that made ready, calls the library without holding the interpreter, and gives Arrow tables and plain values back.
//!
//! | file | what |
//! |---|---|
//! | `work` | threads, a pool per process, requests to stop, progress, panics |
//! | `failure`, `talk` | errors and warnings of the library as those of the package |
//! | `plain` | values of Python as JSON and back |
//! | `columns` | NumPy arrays and Python lists as Arrow columns |
//! | `log` | a log from frames, columns and files |
//! | `table` | a table on its way out |
//! | `histories` | histories to recommend for |
//! | `fitting`, `model`, `recommending` | a model is fitted, and asked |
//! | `training_set` | what a model of one's own learns from |
//! | `experiment`, `own_model`, `run`, `comparison`, `search`, `order` | experiments |
//! | `command_line` | the program `satf` |

#![allow(clippy::needless_pass_by_value, reason = "arguments from Python come by value")]
#![allow(clippy::too_many_arguments, reason = "they are those of functions of Python")]

use pyo3::prelude::*;

mod columns;
mod command_line;
mod comparison;
mod experiment;
mod failure;
mod fitting;
mod histories;
mod log;
mod model;
mod order;
mod own_model;
mod plain;
mod recommending;
mod run;
mod search;
mod table;
mod talk;
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
    use super::experiment::{Cut, cut};
    #[pymodule_export]
    use super::fitting::fit;
    #[pymodule_export]
    use super::histories::Histories;
    #[pymodule_export]
    use super::log::{Log, choose_columns, generate_shape, generate_shop};
    #[pymodule_export]
    use super::model::{Model, default_model, models};
    #[pymodule_export]
    use super::order::order_matters;
    #[pymodule_export]
    use super::run::Run;
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
