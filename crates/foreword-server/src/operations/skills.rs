//! What skills there are for a user.

use std::sync::Arc;

use crate::{
    app::App,
    session::Session,
    skills::{Patience, SkillSet},
};

/// The skills of the session's user, whichever chat it is about.
pub async fn list_skills(app: &App, session: &Session) -> Arc<SkillSet> {
    app.skills()
        .of(session.user_email.as_ref(), Patience::Call)
        .await
}
