//! What `--help` and friends say.

use expect_test::expect;

use crate::support::Place;

#[test]
fn help_explains_commands_exit_codes_and_examples() {
    insta::assert_snapshot!(Place::new().run(&["--help"]).ok());
}

#[test]
fn every_command_has_help() {
    let place = Place::new();
    let help = place.run(&["-h"]).ok();
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help") // is help
        .collect();
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        let text = place.run(&[command, "--help"]).ok();
        assert!(text.contains("Usage: foreword "), "{command}: {text}");
    }
}

#[test]
fn version_names_the_version() {
    let version = Place::new().run(&["--version"]).ok();
    assert_eq!(version, format!("foreword {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_are_scripts() {
    for shell in ["bash", "zsh", "fish"] {
        let script = Place::new().run(&["completions", shell]).ok();
        assert!(script.contains("foreword"), "{shell}");
    }
}

#[test]
fn an_unknown_command_is_refused_with_exit_code_2() {
    expect![[r#"
        exit 2
        --- stderr
        error: unrecognized subcommand 'chekc'

          tip: a similar subcommand exists: 'check'

        Usage: foreword [OPTIONS] [COMMAND]

        For more information, try '--help'.
    "#]]
    .assert_eq(&Place::new().run(&["chekc"]).to_string());
}

#[test]
fn flags_of_serve_before_another_command_are_refused() {
    expect![[r#"
        exit 2
        --- stderr
        error: flags of `serve` stand before another command
        hint: write flags after the command that they belong to
    "#]]
    .assert_eq(
        &Place::new()
            .run(&["--listen", "127.0.0.1:0", "check"])
            .to_string(),
    );
}

#[test]
fn help_is_a_command_too() {
    let place = Place::new();
    let long = place.run(&["--help"]).ok();
    assert_eq!(place.run(&["help"]).ok(), long);
    let check = place.run(&["check", "--help"]).ok();
    assert_eq!(place.run(&["help", "check"]).ok(), check);
}

#[test]
fn options_of_every_command_stand_under_a_heading_of_their_own() {
    let help = Place::new().run(&["check", "-h"]).ok();
    let (own, global) = help.split_once("Global options:\n").unwrap();
    assert!(
        own.contains("--json") && !own.contains("--config"),
        "{help}"
    );
    for option in ["--config", "--data", "--log-format"] {
        assert!(global.contains(option), "{help}");
    }
}

#[test]
fn the_help_of_compose_says_when_a_line_break_is_added() {
    let help = Place::new().run(&["compose", "--help"]).ok();
    assert!(help.contains("byte for byte"), "{help}");
}
