//! `foreword config`

use std::io::{self, Write};

use crate::{
    args::{Common, Output, Serving},
    config::{self, reference, show},
};

pub(crate) fn run(
    common: &Common,
    serving: &Serving,
    output: Output,
    reference: bool,
    schema: bool,
) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    if reference {
        write!(stdout, "{}", reference::page())?;
    } else if schema {
        writeln!(stdout, "{:#}", reference::schema())?;
    } else {
        let loaded = config::load(&common.sources(Some(serving)))?;
        if output.json {
            writeln!(stdout, "{:#}", show::json(&loaded))?;
        } else {
            write!(stdout, "{}", show::text(&loaded))?;
        }
        super::warn(&loaded.warnings);
    }
    Ok(())
}
