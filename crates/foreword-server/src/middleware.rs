//! The stack that every request passes, in order, with reasons.
