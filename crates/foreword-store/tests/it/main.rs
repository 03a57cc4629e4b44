//! The stores through their front door: the contract that every backend keeps, then what is particular to each.

mod contract;
mod support;
mod yaml_store;
