//! Offers Foreword over MCP, REST and pages.
//!
//! Who opens only `router.rs` and `operations/` knows the product. Deliberately absent: the choice of backends and
//! reading the environment (`foreword-cli` does both).

pub mod app;
pub mod auth;
pub mod chat;
pub mod config;
pub mod connections;
pub mod error;
pub mod links;
pub mod metrics;
pub mod operations;
pub mod render;
pub mod router;
pub mod serve;
pub mod session;
pub mod skills;
pub mod workspace;

mod api;
mod extract;
mod mcp;
mod middleware;
mod pages;
mod tls;

pub use app::{App, AppParts};
pub use config::ServerConfig;
pub use connections::Connections;
pub use mcp::{StdioError, StdioSession, serve_stdio};
pub use router::router;
pub use serve::serve;
pub use session::{ChatId, Session};
pub use skills::Skills;
pub use tls::choose_tls;
pub use workspace::{Swept, Workspaces};
