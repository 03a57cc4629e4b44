//! What a session is read from, and what is refused.
