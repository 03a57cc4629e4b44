//! The composition contract, from the text of a library file to the prompt.

use std::fmt::Write as _;

use foreword_compose::{
    Composition, ContextBlock, PartSource, Request, SessionName, SessionValues, Trust, compose,
};
use foreword_store::parse_library;
use serde_json::{Value, json};

const CASES: &str = include_str!("../../../../tests/contract/composition.json");

#[test]
fn every_case_of_the_contract_composes_as_it_says() {
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    assert!(!cases.is_empty());
    let mut failures = String::new();
    for case in &cases {
        let (expected, found) = (&case["expect"], outcome(case));
        if *expected != found {
            writeln!(
                failures,
                "{}\n  expected {expected}\n  found    {found}",
                case["name"]
            )
            .unwrap();
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

fn outcome(case: &Value) -> Value {
    let text = case["library"].as_str().unwrap();
    let library = match parse_library(text) {
        Ok(library) => library,
        Err(errors) => {
            return json!({ "errors": errors.iter().map(ToString::to_string).collect::<Vec<_>>() });
        }
    };
    match compose(&library, &request(&case["request"])) {
        Ok(composition) => summary(&composition),
        Err(_) => json!({ "error": "profile_not_found" }),
    }
}

fn request(request: &Value) -> Request<'_> {
    let session = SessionName::ALL
        .into_iter()
        .fold(SessionValues::default(), |values, name| {
            values.with(name, request["session"][name.as_str()].as_str())
        });
    let variables = request["variables"].as_object().into_iter().flatten();
    let context = request["context"].as_array().into_iter().flatten();
    Request {
        profile_id: request["profile_id"].as_str(),
        session,
        variables: variables
            .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
            .collect(),
        context: context
            .map(|text| ContextBlock {
                id: "request".into(),
                name: "Request".into(),
                text: text.as_str().unwrap().into(),
                trust: Trust::Foreign,
            })
            .collect(),
        system_override: request["system_override"].as_str(),
        ..Request::default()
    }
}

fn summary(composition: &Composition) -> Value {
    let parts: Vec<Value> = composition
        .parts
        .iter()
        .map(|part| match part.source {
            PartSource::Section => json!([part.source.as_str(), part.id]),
            source => json!([source.as_str(), null]),
        })
        .collect();
    json!({
        "system_prompt": composition.text,
        "parts": parts,
        "unresolved": composition.unresolved,
    })
}
