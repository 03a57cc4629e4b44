//! HTTP shapes: decode, call one operation, encode.

pub(crate) mod health;
