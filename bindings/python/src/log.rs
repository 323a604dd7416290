//! A log, from wherever its events are.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{
    ArrayRef, Int64Array, RecordBatch, RecordBatchIterator, RecordBatchReader, TimestampMicrosecondArray,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::input::AnyRecordBatch;
use satf::LogBuilder;
use satf::data::{DataError, IdType, ReadOptions, ReadReport, Role, read_log};
use satf::generate::{ShapeOptions, ShopOptions, like, shop_with};
use satf::interactions::{Clock, Interactions};
use satf::monitor::{Monitor, check_cancelled};
use satf::prepare::Statistics;
use serde::Deserialize;

use crate::columns::batch_of;
use crate::failure::{Failure, Kind};
use crate::plain::{parse, to_json, to_python};
use crate::table::{Table, id_column};
use crate::work::{Watch, Work, run};

/// Rows between two questions whether to stop.
const ROWS_AT_ONCE: usize = 1 << 18;

/// How events are read: `ReadOptions` in the words of Python.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Reading {
    user: Option<String>,
    item: Option<String>,
    time: Option<String>,
    format: Option<String>,
    header: Option<bool>,
    delimiter: Option<String>,
    time_unit: Option<String>,
    order_is_time: bool,
    user_type: Option<String>,
    item_type: Option<String>,
    skip_bad_rows: u64,
}

/// Options of reading, from a dict.
pub(crate) fn read_options(options: Option<&Bound<'_, PyDict>>) -> PyResult<ReadOptions> {
    let Some(options) = options else { return Ok(ReadOptions::default()) };
    let wrong = |message: String| Failure::new(Kind::Config, message);
    let reading: Reading =
        serde_json::from_value(to_json(options.as_any())?).map_err(|error| wrong(error.to_string()))?;
    let delimiter = match reading.delimiter.as_deref().map(str::as_bytes) {
        None => None,
        Some([byte]) => Some(*byte),
        Some(_) => return Err(wrong("delimiter: expected one character of ASCII".to_owned()).into()),
    };
    Ok(ReadOptions {
        format: choice("format", reading.format.as_deref())?,
        user_column: reading.user,
        item_column: reading.item,
        time_column: reading.time,
        header: reading.header,
        delimiter,
        time_unit: choice("time_unit", reading.time_unit.as_deref())?.unwrap_or_default(),
        order_is_time: reading.order_is_time,
        user_type: choice::<IdType>("user_type", reading.user_type.as_deref())?.unwrap_or_default(),
        item_type: choice::<IdType>("item_type", reading.item_type.as_deref())?.unwrap_or_default(),
        skip_bad_rows: reading.skip_bad_rows,
    })
}

fn choice<T: FromStr<Err: Display>>(name: &str, text: Option<&str>) -> Result<Option<T>, Failure> {
    text.map(|text| parse(name, text)).transpose()
}

/// Events of users, items and times.
#[pyclass(frozen, name = "Log", module = "satf._satf")]
pub(crate) struct Log {
    /// None once it was given away.
    events: Mutex<Option<Arc<Interactions>>>,
    warnings: Vec<String>,
}

impl Log {
    pub(crate) fn new(events: Interactions, warnings: Vec<String>) -> Self {
        Log { events: Mutex::new(Some(Arc::new(events))), warnings }
    }

    /// The events.
    pub(crate) fn events(&self) -> Result<Arc<Interactions>, Failure> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.clone().ok_or_else(|| Failure::new(Kind::Internal, "a log was used after it was given away"))
    }

    /// The events, of which nothing stays here.
    pub(crate) fn take(&self) -> Result<Arc<Interactions>, Failure> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner).take();
        events.ok_or_else(|| Failure::new(Kind::Internal, "a log was used after it was given away"))
    }
}

#[pymethods]
impl Log {
    /// From anything with the Arrow PyCapsule interface. `needs_times` is false where an order will do.
    #[staticmethod]
    #[pyo3(signature = (stream, name, options=None, needs_times=true, work=None))]
    fn from_arrow(
        py: Python<'_>,
        stream: AnyRecordBatch,
        name: &str,
        options: Option<&Bound<'_, PyDict>>,
        needs_times: bool,
        work: Option<&Work>,
    ) -> PyResult<Self> {
        let options = read_options(options)?;
        let reader = stream.into_reader()?;
        run(py, work, |watch| read_batches(reader, name, options, needs_times, watch))
    }

    /// From columns by name, as `batch_of` takes them.
    #[staticmethod]
    #[pyo3(signature = (columns, name, options=None, needs_times=true, work=None))]
    fn from_columns(
        py: Python<'_>,
        columns: &Bound<'_, PyDict>,
        name: &str,
        options: Option<&Bound<'_, PyDict>>,
        needs_times: bool,
        work: Option<&Work>,
    ) -> PyResult<Self> {
        let options = read_options(options)?;
        let batch = batch_of(columns)?;
        let schema = batch.schema();
        let reader = Box::new(RecordBatchIterator::new(vec![Ok(batch)], schema));
        run(py, work, |watch| read_batches(reader, name, options, needs_times, watch))
    }

    /// From files, one after the other.
    #[staticmethod]
    #[pyo3(signature = (paths, options=None, work=None))]
    fn from_paths(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        options: Option<&Bound<'_, PyDict>>,
        work: Option<&Work>,
    ) -> PyResult<Self> {
        let options = read_options(options)?;
        run(py, work, |watch| {
            let (events, report) = read_log(&paths, &options, watch)?;
            Ok(Log::new(events, warnings_of(&report)))
        })
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.events()?.len())
    }

    #[getter]
    fn num_users(&self) -> PyResult<usize> {
        Ok(self.events()?.users().len())
    }

    #[getter]
    fn num_items(&self) -> PyResult<usize> {
        Ok(self.events()?.items().len())
    }

    /// Whether its times are those of a calendar, and not an order alone.
    #[getter]
    fn has_times(&self) -> PyResult<bool> {
        Ok(self.events()?.clock() == Clock::Calendar)
    }

    /// What may be wrong with it.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// A number that tells this log from others.
    fn fingerprint(&self, py: Python<'_>) -> PyResult<u64> {
        let events = self.events()?;
        Ok(py.detach(|| events.fingerprint()))
    }

    /// Size and shape.
    fn statistics(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let events = self.events()?;
        let statistics = run(py, None, |_| Ok(Statistics::of(&events)))?;
        to_python(py, &statistics)
    }

    /// Its rows as columns `user_id`, `item_id`, `timestamp`.
    fn table(&self, py: Python<'_>) -> PyResult<Table> {
        let events = self.events()?;
        Ok(py.detach(|| table_of(&events)))
    }

    /// Ids of the users, ascending.
    fn users(&self) -> PyResult<Table> {
        let events = self.events()?;
        Ok(Table::of(vec![("user_id", id_column(events.users(), 0..events.users().len()))]))
    }

    /// Ids of the items, ascending.
    fn items(&self) -> PyResult<Table> {
        let events = self.events()?;
        Ok(Table::of(vec![("item_id", id_column(events.items(), 0..events.items().len()))]))
    }
}

/// The columns of a table that are needed, by their places.
#[pyfunction]
#[pyo3(signature = (names, name, options=None, needs_times=true))]
pub(crate) fn choose_columns(
    names: Vec<String>,
    name: &str,
    options: Option<&Bound<'_, PyDict>>,
    needs_times: bool,
) -> PyResult<Vec<usize>> {
    let options = read_options(options)?;
    let chosen = match satf::data::choose_columns(name, &names, &options) {
        Err(DataError::UnknownColumn { role: Role::Time, wanted: None, .. }) if !needs_times => {
            let options = ReadOptions { order_is_time: true, ..options };
            satf::data::choose_columns(name, &names, &options)
        }
        chosen => chosen,
    };
    Ok(chosen.map_err(Failure::from)?.into_iter().map(|(_, at)| at).collect())
}

fn read_batches(
    reader: Box<dyn RecordBatchReader + Send>,
    name: &str,
    options: ReadOptions,
    needs_times: bool,
    watch: &Watch,
) -> Result<Log, Failure> {
    watch.begin("reading", 0);
    let mut builder = LogBuilder::with_options(options.clone());
    let mut schema = None;
    for batch in reader {
        let batch = batch.map_err(|error| Failure::new(Kind::Data, format!("{name}: {error}")))?;
        schema.get_or_insert_with(|| batch.schema());
        for from in (0..batch.num_rows()).step_by(ROWS_AT_ONCE) {
            check_cancelled(watch)?;
            let part = batch.slice(from, ROWS_AT_ONCE.min(batch.num_rows() - from));
            match builder.add_part(name, &part) {
                Err(DataError::UnknownColumn { role: Role::Time, wanted: None, .. })
                    if !needs_times && builder.is_empty() =>
                {
                    builder =
                        LogBuilder::with_options(ReadOptions { order_is_time: true, ..options.clone() });
                    builder.add_part(name, &part)?;
                }
                added => added?,
            }
            watch.advance(part.num_rows() as u64);
        }
    }
    let report = builder.report();
    let events = builder.finish().map_err(|error| match error {
        DataError::NoRows { .. } => Failure::new(Kind::Data, format!("{name} has no rows")),
        error => error.into(),
    })?;
    Ok(Log::new(events, warnings_of(&report)))
}

/// What may be wrong with a log that was read.
fn warnings_of(report: &ReadReport) -> Vec<String> {
    let mut warnings = Vec::new();
    for file in &report.files {
        let path = file.path.display();
        if let Some(first) = file.doubtful_dates {
            warnings.push(format!(
                "{path}: times such as {first} look like dates (year, month, day) and are read as seconds since 1970, all within a few \
                 days; time_unit='yyyymmdd' reads them as dates, time_unit='seconds' as seconds"
            ));
        }
        if let Some(row) = &file.doubtful_first_row {
            let (taken_for, other, option) = if row.is_header {
                ("the names of the columns", "it is an event", "header=False")
            } else {
                ("an event", "it names the columns", "header=True")
            };
            let fields = row.fields.join(", ");
            warnings.push(format!(
                "{path}: the first row ({fields}) is taken for {taken_for}; if {other}, give {option}"
            ));
        }
    }
    if report.skipped_rows > 0 {
        let first = report.skipped_messages.first().map(String::as_str).unwrap_or_default();
        warnings.push(format!("skipped {} bad row(s); the first: {first}", report.skipped_rows));
    }
    if report.finer_times > 0 {
        warnings.push(format!(
            "{} time(s) are finer than a microsecond and are rounded to it; events of a user within one are ties",
            report.finer_times
        ));
    }
    warnings
}

/// The rows of a log as columns.
pub(crate) fn table_of(log: &Interactions) -> Table {
    let rows = log.rows();
    let times = rows.iter().map(|row| row.time.0);
    let times: ArrayRef = match log.clock() {
        Clock::Calendar => Arc::new(TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC")),
        Clock::RowOrder => Arc::new(Int64Array::from_iter_values(times)),
    };
    let batch = RecordBatch::try_from_iter([
        ("user_id", id_column(log.users(), rows.iter().map(|row| row.user.get()))),
        ("item_id", id_column(log.items(), rows.iter().map(|row| row.item.get()))),
        ("timestamp", times),
    ]);
    Table::new(batch.expect("invariant: a value per row in every column"))
}

/// A made-up shop.
#[pyfunction]
#[pyo3(signature = (options, work=None))]
pub(crate) fn generate_shop(
    py: Python<'_>,
    options: &Bound<'_, PyDict>,
    work: Option<&Work>,
) -> PyResult<Log> {
    let options: ShopOptions = serde_json::from_value(to_json(options.as_any())?)
        .map_err(|error| Failure::new(Kind::Config, error.to_string()))?;
    run(py, work, |watch| Ok(Log::new(shop_with(&options, watch)?, Vec::new())))
}

/// A made-up log of a given shape.
#[pyfunction]
#[pyo3(signature = (options, work=None))]
pub(crate) fn generate_shape(
    py: Python<'_>,
    options: &Bound<'_, PyDict>,
    work: Option<&Work>,
) -> PyResult<Log> {
    let options: ShapeOptions = serde_json::from_value(to_json(options.as_any())?)
        .map_err(|error| Failure::new(Kind::Config, error.to_string()))?;
    run(py, work, |_| Ok(Log::new(like(&options)?, Vec::new())))
}
