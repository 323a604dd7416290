//! From a log to what models learn from and are judged on.

mod histories;

pub use histories::Histories;
