//! Who is calling, and what they may do.

use std::sync::Arc;

use crate::config::{Form, Role};

/// The caller of a request, after its key was checked.
#[derive(Debug, Clone)]
pub struct Caller {
    /// What the key opens; without keys every caller is an administrator.
    pub role: Role,
    /// The name of the key, for logs.
    pub key_name: Option<Arc<str>>,
    /// The form of instructions that this key asks for.
    pub instructions: Option<Form>,
}
