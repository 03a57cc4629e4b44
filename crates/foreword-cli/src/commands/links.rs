//! `foreword links`

use super::print;
use crate::{args::LinksCommand, config::Loaded, link_key};

pub(crate) fn run(loaded: &Loaded, command: &LinksCommand) -> anyhow::Result<()> {
    match command {
        LinksCommand::Rotate => {
            link_key::rotate(&loaded.config.data_dir)?;
            print(
                "made a new link key: every link handed out before stops working\n\
                 restart a server that is running, so that it signs with the new key",
            )
        }
    }
}
