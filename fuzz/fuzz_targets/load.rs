//! The text of a library, and a request to what it holds: nothing may panic, whatever the bytes.
#![no_main]

#[path = "../input.rs"]
mod input;

use foreword_store::parse_library;
use libfuzzer_sys::fuzz_target;

use crate::input::Input;

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let text = input.text();
    match parse_library(&text) {
        Ok(library) => input::exercise(&library, &mut input),
        Err(errors) => assert!(!errors.is_empty(), "a library is refused for a reason"),
    }
});
