//! Reads an item from a JSON body, which may be wrapped as `GET` shows it.

use foreword_compose::Fault;
use serde_json::Value;

use crate::{
    extract::fields::Fields,
    operations::prompts::{Document, Proposal},
};

/// Reads `body` with `read`, which is given the item: what `wrapper` holds, or the body itself.
pub(super) fn read_wrapped<T>(
    body: &Value,
    wrapper: &'static Wrapper,
    read: impl FnOnce(&mut Fields<'_>) -> T,
) -> Proposal<T> {
    let Some(item) = body.get(wrapper.name) else {
        return read_bare(body, read);
    };
    let mut faults = Vec::new();
    let mut outer = Fields::new(body, String::new(), &mut faults);
    outer.value(wrapper.name);
    outer.ignore(wrapper.beside);
    outer.finish();
    read_item(item, wrapper.pointer, faults, read)
}

/// Reads `body` with `read`.
pub(super) fn read_bare<T>(body: &Value, read: impl FnOnce(&mut Fields<'_>) -> T) -> Proposal<T> {
    read_item(body, "", Vec::new(), read)
}

fn read_item<T>(
    item: &Value,
    pointer: &'static str,
    mut faults: Vec<Fault>,
    read: impl FnOnce(&mut Fields<'_>) -> T,
) -> Proposal<T> {
    let mut fields = Fields::new(item, pointer.to_owned(), &mut faults);
    let value = read(&mut fields);
    fields.finish();
    Proposal {
        value,
        document: Document {
            item: pointer,
            faults,
        },
    }
}

/// The object that `GET` puts around an item.
pub(super) struct Wrapper {
    /// The name of the field that holds the item.
    pub(super) name: &'static str,
    /// A JSON pointer to that field.
    pub(super) pointer: &'static str,
    /// The read-only fields beside it.
    pub(super) beside: &'static [&'static str],
}
