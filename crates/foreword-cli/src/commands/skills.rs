//! `foreword skills`

use foreword_server::{session::parse_email, skills::user_directory};

use super::print;
use crate::{
    args::SkillsCommand,
    config::Loaded,
    failure::{Exit, Failure},
};

pub(crate) fn run(loaded: &Loaded, command: &SkillsCommand) -> anyhow::Result<()> {
    match command {
        SkillsCommand::Path { email } => {
            let email = parse_email(email).map_err(|why| {
                let failure = Failure::new(
                    Exit::Unusable,
                    format!("no request could name `{email}` as its user: {why}"),
                );
                failure.hint("give the address that the client sends as `X-User-Email`")
            })?;
            let skills = loaded.config.data_dir.join("skills/user");
            let path = std::path::absolute(skills.join(user_directory(&email)))?;
            print(&path.display().to_string())
        }
    }
}
