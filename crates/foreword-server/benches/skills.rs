//! Measures what 500 skills of a user cost a prompt: made anew for a chat, and taken from the cache; beside copying its bytes.
//!
//! Works take turns round by round, so that a busy machine slows all of them. Run it with `cargo bench -p foreword-server --bench skills`;
//! it ends with an error if the bar is missed.

use std::{
    fs,
    hint::black_box,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use foreword_sandbox::{NoSandboxes, SandboxConfig};
use foreword_server::{
    App, AppParts, ChatId, Connections, ServerConfig, Session, Skills, Workspaces, config::Form,
    render::Surroundings, skills::SkillsConfig,
};
use foreword_store::{Clock, StoreConfig, YamlStore};

/// How many skills the user has.
const SKILLS: usize = 500;

/// How often each work is done.
const ROUNDS: usize = 101;

/// How long a prompt may take.
const BAR: Duration = Duration::from_millis(5);

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("there are threads").block_on(measure())
}

async fn measure() -> ExitCode {
    let data = tempfile::tempdir().expect("a directory can be made");
    for at in 0..SKILLS {
        let name = format!("skill-{at}");
        let directory = data.path().join("skills/user/ann@example.com").join(&name);
        fs::create_dir_all(&directory).expect("a directory can be made");
        let description =
            "Does what users ask for when they ask for it, and nothing else. ".repeat(4);
        let text = format!("---\nname: {name}\ndescription: {description}\n---\n\nDo it.\n");
        fs::write(directory.join("SKILL.md"), text).expect("a file can be written");
    }
    let app = app(data.path());
    let prompt = app
        .renderer()
        .render(&session(0), Form::Full)
        .await
        .expect("there is a prompt");
    let text = prompt.text();
    assert!(text.contains("skill-499"));
    let (mut cold, mut hot, mut copy) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let (new, known) = (session(round), session(0));
        let started = Instant::now();
        black_box(
            app.renderer()
                .render(&new, Form::Full)
                .await
                .expect("there is a prompt"),
        );
        cold.push(started.elapsed());
        let started = Instant::now();
        black_box(
            app.renderer()
                .render(&known, Form::Full)
                .await
                .expect("there is a prompt"),
        );
        hot.push(started.elapsed());
        let started = Instant::now();
        black_box(text.as_bytes().to_vec());
        copy.push(started.elapsed());
    }
    let [cold, hot, copy] = [cold, hot, copy].map(|mut times| {
        times.sort_unstable();
        times[ROUNDS / 2]
    });
    let ratio = cold.as_secs_f64() / copy.as_secs_f64();
    let reached = cold <= BAR;
    let verdict = if reached { "reached" } else { "MISSED" };
    println!("a prompt of {} KiB with {SKILLS} skills", text.len() >> 10);
    println!("made for a new chat     {cold:>10.1?}   bar {BAR:?}   {verdict}");
    println!("  against copying it    {ratio:>10.1} × {copy:.1?}");
    println!("taken from the cache    {hot:>10.1?}");
    if reached {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn app(data: &std::path::Path) -> App {
    let clock: Clock = Arc::new(jiff::Timestamp::now);
    let store = YamlStore::open(data, &StoreConfig::default(), Arc::clone(&clock));
    let config = ServerConfig::default();
    let host_uid = SandboxConfig::default().host_uid;
    let workspaces = Workspaces::new(None, host_uid, &config, Arc::clone(&clock));
    let (skills, _) = Skills::open(&SkillsConfig::default(), data, &workspaces);
    App::new(AppParts {
        store: Arc::new(store.expect("there is a library")),
        workspaces,
        sandboxes: Arc::new(NoSandboxes::wanted()),
        surroundings: Surroundings::with_workspace(&SandboxConfig::default(), &[]),
        connections: Connections::none(Arc::clone(&clock)),
        skills,
        config,
        clock,
        link_key: [7; 32],
    })
}

fn session(chat: usize) -> Session {
    Session {
        chat_id: ChatId::parse(&format!("chat-{chat}")).expect("it is a chat id"),
        chat_id_given: true,
        shared: false,
        user_email: Some("ann@example.com".into()),
        user_name: None,
        profile_id: None,
    }
}
