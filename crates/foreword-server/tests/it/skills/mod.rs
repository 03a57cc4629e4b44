//! Skills: which a session has, what its prompt says of them, and what is left out.

mod given;
mod local;
mod mcp;
mod provider;

use std::{fs, path::PathBuf, time::Duration};

use foreword_server::config::Secret;
use serde_json::Value;

use crate::support::{TestServer, TestServerBuilder};
use provider::{Provider, skill_md};

/// How long something may take that happens soon.
const PATIENCE: Duration = Duration::from_secs(90);

fn server() -> TestServerBuilder {
    TestServer::builder()
        .library("global_prompt: Be kind.\nvariables: {who: Ann}\n")
        .workspace()
        .config(|config| config.skills.shipped = false)
}

fn asking(provider: &Provider) -> TestServerBuilder {
    server().config(|config| {
        config.skills.provider.url = Some(provider.url());
        config.skills.provider.key = Some(Secret::new("of-the-provider"));
    })
}

impl TestServer {
    fn skills_directory(&self, below: &str) -> PathBuf {
        self.data.path().join("skills").join(below)
    }

    /// Writes a skill with one description.
    fn write_skill(&self, below: &str, description: &str) {
        let directory = self.skills_directory(below);
        fs::create_dir_all(&directory).unwrap();
        let name = directory.file_name().unwrap().to_str().unwrap();
        fs::write(directory.join("SKILL.md"), skill_md(name, description)).unwrap();
    }

    async fn prompt_for(&self, email: &str) -> String {
        let request = self
            .get("/system-prompt?chat_id=a")
            .header("x-user-email", email.to_owned());
        let response = request.await;
        assert_eq!(response.status, 200);
        response.text().to_owned()
    }

    async fn skills_of(&self, email: &str) -> Value {
        let response = self.get(&format!("/api/skills?user_email={email}")).await;
        assert_eq!(response.status, 200, "{}", response.text());
        response.json()
    }

    /// `GROUP/NAME ORIGIN` of each skill, and `NAME: REASON` of each that is left out.
    async fn summary_of(&self, email: &str) -> Vec<String> {
        let skills = self.skills_of(email).await;
        let skills = skills["skills"].as_array().unwrap().iter();
        let text = |skill: &Value, key: &str| skill[key].as_str().unwrap_or_default().to_owned();
        skills
            .map(|skill| {
                if skill["state"] == "available" {
                    format!(
                        "{}/{} {}",
                        text(skill, "group"),
                        text(skill, "name"),
                        text(skill, "origin")
                    )
                } else {
                    format!("{}: {}", text(skill, "name"), text(skill, "reason"))
                }
            })
            .collect()
    }
}

async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    waited.unwrap_or_else(|_| panic!("waited in vain: {what}"));
}
