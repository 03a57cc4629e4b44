//! All cases.

mod chats;
mod commands;
mod escapes;
mod files;
mod life;
mod limits;
mod sight;

use std::{future::Future, pin::Pin};

use crate::support::Backend;

/// One fact about a backend.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) run: fn(Backend) -> Pin<Box<dyn Future<Output = ()>>>,
}

/// The cases of a module, each named like its function.
macro_rules! cases {
    ($($name:ident)*) => {
        pub(crate) fn all() -> Vec<$crate::cases::Case> {
            vec![$($crate::cases::Case {
                name: concat!(module_path!(), "::", stringify!($name)),
                run: |backend| Box::pin($name(backend)),
            }),*]
        }
    };
}
pub(crate) use cases;

/// What is about the host's own programs and files, which containers do not see.
pub(crate) const OF_NAMESPACES: [&str; 4] = [
    "sight::nothing_of_the_host_is_seen_but_its_programs",
    "sight::the_files_of_the_host_belong_to_nobody",
    "sight::settings_of_chromium_are_shown_and_keys_are_not",
    "sight::a_root_file_system_of_ones_choice_is_used",
];

pub(crate) fn all() -> Vec<Case> {
    let cases = [
        chats::all(),
        commands::all(),
        escapes::all(),
        files::all(),
        life::all(),
        limits::all(),
        sight::all(),
    ]
    .concat();
    cases
        .into_iter()
        .map(|case| Case {
            name: case
                .name
                .strip_prefix("contract::cases::")
                .unwrap_or(case.name),
            ..case
        })
        .collect()
}
