//! The library as a YAML file, read and rewritten through the public functions.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod broken;
mod contract;
mod editing;
mod faults;
mod hostile;
mod libraries;
mod odd;
mod properties;
mod second_reader;
mod shipped;
mod styles;
