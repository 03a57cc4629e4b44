//! The stores through their front door: the contract that every backend keeps, then what is particular to each.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod contract;
mod support;
mod yaml_store;
