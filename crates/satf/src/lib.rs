//! `satf` recommends the next item: it learns from ordered histories (who took what, when) and answers what
//! comes next, without deep learning, on a CPU.
//!
//! Data flows one way: files ([`data`]) become [`interactions`], are prepared and split ([`prepare`]), models
//! learn from histories ([`models`]; the sequence-aware ones see them as a [`tensor`] and [`factorize`] it, on
//! [`linalg`]), and [`evaluate`] judges them.

pub mod data;
pub mod evaluate;
pub mod factorize;
pub mod generate;
pub mod interactions;
pub mod linalg;
pub mod models;
pub mod monitor;
pub mod prepare;
pub mod tensor;
