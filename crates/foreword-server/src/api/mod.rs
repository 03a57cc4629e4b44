//! HTTP shapes: decode, call one operation, encode.
