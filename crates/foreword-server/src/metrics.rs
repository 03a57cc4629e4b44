//! What is counted, with bounded labels: never a chat, an e-mail, a path.

/// The counters of one server; cheap to clone.
#[derive(Clone, Default)]
pub struct Metrics {}

impl Metrics {
    /// Counters at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}
