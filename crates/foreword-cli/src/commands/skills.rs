//! `foreword skills`

use foreword_server::skills::user_directory;

use super::print;
use crate::{
    args::SkillsCommand,
    config::Loaded,
    failure::{Exit, Failure},
};

pub(crate) fn run(loaded: &Loaded, command: &SkillsCommand) -> anyhow::Result<()> {
    match command {
        SkillsCommand::Path { email } => {
            let email = email.trim().to_lowercase();
            if !email.contains('@') {
                let failure =
                    Failure::new(Exit::Unusable, format!("`{email}` is no e-mail address"));
                return Err(failure
                    .hint("give the address that the client sends as `X-User-Email`")
                    .into());
            }
            let skills = loaded.config.data_dir.join("skills/user");
            let path = std::path::absolute(skills.join(user_directory(&email)))?;
            print(&path.display().to_string())
        }
    }
}
