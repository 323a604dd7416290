//! Requests and answers as they come and go: JSON. These types are the API; `/openapi.json` is made from them.

mod answers;
mod history;
mod ids;
mod requests;
mod server;

pub use answers::*;
pub use history::*;
pub(crate) use ids::Object;
pub use ids::*;
pub use requests::*;
pub use server::*;
