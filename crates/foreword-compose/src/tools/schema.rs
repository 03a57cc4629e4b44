//! Decides how a JSON schema reads as a list of parameters.
//!
//! Schemas come from other people's servers: anything may stand in them, references may go in circles, and a small
//! schema may unfold to an endless one. What is not understood is passed over; depth, steps and bytes are bounded.
//! Deliberately absent: validation, and keywords that say which values are accepted beyond type, enum and default.

use std::ptr;

use serde_json::{Map, Value};

use super::{SHOWN_NAME, push_description};
use crate::foreign::{code, json_code, one_line};

/// Adds one item per property of `schema` to `entry`, nested ones below theirs, up to about `limit` bytes.
pub(super) fn push_parameters(entry: &mut String, schema: &Value, limit: usize) {
    let end = entry.len() + limit;
    let mut list = ParameterList {
        schemas: Schemas { root: schema },
        text: entry,
        end,
        left_out: 0,
    };
    list.push_properties(schema, 1);
    if list.left_out > 0 {
        let note = format!("\n  - … [cut: {} more parameters]", list.left_out);
        entry.push_str(&note);
    }
}

/// How deep objects inside objects are listed.
const MAX_DEPTH: usize = 3;

struct ParameterList<'a> {
    schemas: Schemas<'a>,
    text: &'a mut String,
    /// Beyond this length no parameter begins.
    end: usize,
    /// How many parameters had no room.
    left_out: usize,
}

impl<'a> ParameterList<'a> {
    fn push_properties(&mut self, schema: &'a Value, depth: usize) {
        for property in self.schemas.properties(schema) {
            if self.text.len() >= self.end {
                self.left_out += 1;
                continue;
            }
            self.push_property(&property, depth);
            if depth < MAX_DEPTH {
                self.push_properties(property.schema, depth + 1);
            }
        }
    }

    fn push_property(&mut self, property: &Property<'a>, depth: usize) {
        let schemas = self.schemas;
        let node = schemas.node(property.schema);
        let indentation = "  ".repeat(depth);
        let required = if property.required {
            "required"
        } else {
            "optional"
        };
        let default = node.and_then(|node| node.get("default"));
        self.text.extend([
            "\n",
            &indentation,
            "- ",
            &code(property.name, SHOWN_NAME),
            " (",
            &schemas.type_name(property.schema),
            ", ",
            required,
            &one_of(&schemas.enum_values(property.schema)),
            &default.map_or_else(String::new, |value| {
                format!("; default {}", shown_value(value))
            }),
            ")",
        ]);
        let description = node.and_then(|node| node.get("description")?.as_str());
        push_description(self.text, &format!("{indentation}  "), description);
    }
}

/// How many values of an enum are shown.
const SHOWN_VALUES: usize = 50;

fn one_of(values: &[&Value]) -> String {
    if values.is_empty() {
        return String::new();
    }
    let shown = values.iter().take(SHOWN_VALUES);
    let shown: Vec<_> = shown.map(|value| shown_value(value)).collect();
    let more = match values.len().saturating_sub(SHOWN_VALUES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("; one of {}{more}", shown.join(", "))
}

/// The longest value that is shown whole, in characters of JSON.
const LONGEST_VALUE: usize = 100;

fn shown_value(value: &Value) -> String {
    json_code(value, LONGEST_VALUE)
}

/// One property of an object.
struct Property<'a> {
    name: &'a str,
    schema: &'a Value,
    required: bool,
}

/// A schema and all that it can refer to.
#[derive(Clone, Copy)]
struct Schemas<'a> {
    root: &'a Value,
}

/// How many steps one question about a schema may take.
const MAX_STEPS: usize = 64;

impl<'a> Schemas<'a> {
    /// `schema` as an object, seen together with what it refers to.
    fn node(self, schema: &'a Value) -> Option<Node<'a>> {
        let own = schema.as_object()?;
        let mut target = own;
        for _ in 0..MAX_STEPS {
            let next = match (member(target, "$ref"), member(target, "allOf")) {
                (Some(reference), _) => reference
                    .as_str()
                    .and_then(|reference| self.root.pointer(reference.strip_prefix('#')?)),
                (None, Some(Value::Array(all))) if all.len() == 1 => all.first(),
                _ => None,
            };
            match next.and_then(Value::as_object) {
                Some(next) => target = next,
                None => break,
            }
        }
        let target = (!ptr::eq(own, target)).then_some(target);
        Some(Node { own, target })
    }

    /// The properties that a value of `schema` has, or that the items of such an array have.
    fn properties(self, schema: &'a Value) -> Vec<Property<'a>> {
        let mut found = Vec::new();
        self.find_properties(schema, &mut found, &mut { MAX_STEPS });
        found
    }

    fn find_properties(self, schema: &'a Value, found: &mut Vec<Property<'a>>, steps: &mut usize) {
        let Some(node) = take_step(steps).and_then(|()| self.node(schema)) else {
            return;
        };
        if let Some(properties) = node.get("properties").and_then(Value::as_object) {
            let required = node.list("required");
            found.extend(properties.iter().map(|(name, schema)| Property {
                name,
                schema,
                required: required.iter().any(|required| required == name),
            }));
        }
        for part in node.list("allOf").iter().chain(node.get("items")) {
            self.find_properties(part, found, steps);
        }
        // Of several kinds of objects none is listed: their properties do not go together.
        let mut objects = node.alternatives().iter().filter_map(|alternative| {
            let mut found = Vec::new();
            self.find_properties(alternative, &mut found, steps);
            (!found.is_empty()).then_some(found)
        });
        if let (Some(only), None) = (objects.next(), objects.next()) {
            found.extend(only);
        }
    }

    /// The type in words, such as `string | null` or `array of string`.
    fn type_name(self, schema: &'a Value) -> String {
        self.type_name_within(schema, &mut { MAX_STEPS })
    }

    fn type_name_within(self, schema: &'a Value, steps: &mut usize) -> String {
        if take_step(steps).is_none() {
            return "…".to_owned();
        }
        let Some(node) = self.node(schema) else {
            return "any".to_owned();
        };
        let alternatives = node.alternatives();
        if !alternatives.is_empty() {
            return union(
                alternatives
                    .iter()
                    .map(|part| self.type_name_within(part, steps)),
            );
        }
        match node.get("type") {
            Some(Value::String(name)) => self.named_type(name, node, steps),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                union(names.map(|name| self.named_type(name, node, steps)))
            }
            _ => self.implied_type(node, steps),
        }
    }

    fn named_type(self, name: &str, node: Node<'a>, steps: &mut usize) -> String {
        if name != "array" {
            return one_line(name, SHOWN_NAME);
        }
        let items = match node.get("items").or(node.get("prefixItems")) {
            Some(Value::Array(items)) => {
                union(items.iter().map(|item| self.type_name_within(item, steps)))
            }
            Some(item) => self.type_name_within(item, steps),
            None => return name.to_owned(),
        };
        match items {
            any if any == "any" => name.to_owned(),
            union if union.contains(" | ") => format!("array of ({union})"),
            single => format!("array of {single}"),
        }
    }

    /// The type of a schema that does not name it.
    fn implied_type(self, node: Node<'a>, steps: &mut usize) -> String {
        let values = node.values();
        if !values.is_empty() {
            return union(
                values
                    .iter()
                    .take(MAX_STEPS)
                    .map(|value| type_of_value(value).to_owned()),
            );
        }
        if node.get("properties").is_some() {
            return "object".to_owned();
        }
        if node.get("items").or(node.get("prefixItems")).is_some() {
            return self.named_type("array", node, steps);
        }
        let all = node.list("allOf").iter();
        all.map(|part| self.type_name_within(part, steps))
            .find(|name| name != "any")
            .unwrap_or_else(|| "any".to_owned())
    }

    /// The values that are accepted, where they are listed; of an array, those of its items.
    fn enum_values(self, schema: &'a Value) -> Vec<&'a Value> {
        let mut found = Vec::new();
        self.find_enum_values(schema, &mut found, &mut { MAX_STEPS });
        found
    }

    fn find_enum_values(self, schema: &'a Value, found: &mut Vec<&'a Value>, steps: &mut usize) {
        let Some(node) = take_step(steps).and_then(|()| self.node(schema)) else {
            return;
        };
        found.extend(node.values());
        for part in node.alternatives().iter().chain(node.get("items")) {
            self.find_enum_values(part, found, steps);
        }
    }
}

/// An object of a schema; its own words win over those of what it refers to.
#[derive(Clone, Copy)]
struct Node<'a> {
    own: &'a Map<String, Value>,
    target: Option<&'a Map<String, Value>>,
}

impl<'a> Node<'a> {
    fn get(self, key: &str) -> Option<&'a Value> {
        member(self.own, key).or_else(|| member(self.target?, key))
    }

    /// The array under `key`; empty if there is none.
    fn list(self, key: &str) -> &'a [Value] {
        let list = self.get(key).and_then(Value::as_array);
        list.map_or(&[], Vec::as_slice)
    }

    fn alternatives(self) -> &'a [Value] {
        match self.list("anyOf") {
            [] => self.list("oneOf"),
            any => any,
        }
    }

    /// The values of `enum` and `const`.
    fn values(self) -> Vec<&'a Value> {
        self.list("enum").iter().chain(self.get("const")).collect()
    }
}

/// The member `key` of `object`. Schemas are small, and to compare a few keys is faster than to hash one.
fn member<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    if object.len() > 8 {
        return object.get(key);
    }
    let (_, value) = object.iter().find(|(name, _)| *name == key)?;
    Some(value)
}

/// Takes one of the steps that are left, if any is.
fn take_step(steps: &mut usize) -> Option<()> {
    *steps = steps.checked_sub(1)?;
    Some(())
}

/// The names in the order given, each once.
fn union(names: impl Iterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    if distinct.is_empty() {
        return "any".to_owned();
    }
    distinct.join(" | ")
}

fn type_of_value(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
