//! What the network is made of: operations with their gradients, written out.
//!
//! Arrays are plain slices. All operations work on packed tokens: the rows of all sequences of a group, one after the other,
//! without padding. Each is sequential; groups of sequences run beside each other ([`crate::gradient`]). A group's rows fit into
//! the cache, so what one operation writes the next one finds there. An operation whose argument nobody needs any more writes
//! to its place.

mod attention;
mod dropout;
mod layer_norm;
mod linear;

pub(crate) use attention::Attention;
pub(crate) use dropout::{add_dropped, drop_some, relu_dropout, relu_dropout_backward};
pub(crate) use layer_norm::LayerNorm;
pub(crate) use linear::Linear;
