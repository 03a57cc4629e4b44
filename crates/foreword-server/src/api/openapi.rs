//! The OpenAPI document: made from the handlers, with what they have in common added here.
//!
//! Answers have schemas of their own; what a request may leave out, or may not say at all, is derived from them, so that
//! there is one description of each field.

use std::{collections::BTreeMap, sync::LazyLock};

use axum::response::IntoResponse;
use http::header;
use utoipa::{
    IntoParams, IntoResponses, Modify, OpenApi, PartialSchema,
    openapi::{
        Components, ContentBuilder, Paths, Ref, RefOr, Required, ResponseBuilder,
        path::{Parameter, ParameterBuilder, ParameterIn},
        response::Response,
        schema::{AdditionalProperties, ArrayBuilder, ObjectBuilder, Schema, Type},
        security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use super::{
    chat::{ChatRefusal, completions, litellm, messages, models, turn},
    docs,
    files::{archive, chats, download, outputs, uploads},
    health, mcp_info,
    prompts::{compose, events, library, places, profiles, sections, texts, tools},
    render_cache, skills, system_prompt,
};
use crate::{config::Form, error::FaultItem, mcp, pages::preview};

/// Shows the OpenAPI document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "documentation", security(()),
    responses((status = 200, description = "This document", body = Object)),
)]
pub(crate) async fn show_openapi() -> impl IntoResponse {
    // Made once: anybody may ask for it.
    static DOCUMENT: LazyLock<String> =
        LazyLock::new(|| serde_json::to_string(&document()).expect("the document is plain data"));
    (
        [(header::CONTENT_TYPE, "application/json")],
        DOCUMENT.as_str(),
    )
}

/// The document.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Foreword",
        description = "One system prompt, composed once, delivered everywhere.",
    ),
    paths(
        profiles::list_profiles, profiles::create_profile,
        profiles::get_profile, profiles::replace_profile, profiles::patch_profile, profiles::delete_profile,
        profiles::set_default_profile,
        places::put_place, places::patch_place, places::remove_place, places::order_places,
        texts::get_global_prompt, texts::update_global_prompt,
        sections::list_sections, sections::create_section,
        sections::get_section, sections::replace_section, sections::patch_section, sections::delete_section,
        texts::get_workspace_guide, texts::replace_workspace_guide,
        texts::get_variables, texts::replace_variables,
        compose::preview_prompt, compose::preview_given_prompt,
        tools::get_tools_prompt, tools::make_tools_prompt,
        library::get_status, library::export_library, library::import_library, library::undo_edit,
        events::follow_changes,
        system_prompt::get_system_prompt, mcp::endpoint::deliver, mcp_info::get_mcp_info, render_cache::delete_render_cache,
        skills::get_skills, skills::get_skill_list,
        completions::create_completion, models::list_models, messages::create_message, turn::answer_message,
        litellm::get_litellm_prompt,
        uploads::put_upload, uploads::post_upload, uploads::delete_upload,
        uploads::list_uploads, uploads::list_uploads_of_chat, uploads::get_manifest,
        outputs::list_outputs, download::get_file, archive::get_archive, preview::show_preview, chats::delete_chat,
        health::health, health::readyz, health::show_metrics,
        show_openapi, docs::show_docs,
    ),
    components(schemas(events::MissedChanges, Form, ChatRefusal)),
    tags(
        (name = "prompts", description = "The prompt library: profiles, sections, texts, and what they compose to"),
        (name = "delivery", description = "The prompt of a session, over HTTP and MCP"),
        (name = "chat", description = "Conversations of clients that speak no MCP, passed on with the prompt in place"),
        (name = "files", description = "The files of a chat: uploads in, outputs out"),
        (name = "system", description = "Whether the server lives and serves"),
        (name = "documentation", description = "This document, to read and to generate from"),
    ),
    security(("api_key" = []), ("api_key_header" = [])),
    modifiers(&Common),
)]
struct Document;

/// What all routes have in common.
struct Common;

impl Modify for Common {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        add_security(components);
        for problem in PROBLEMS {
            let response = problem.response();
            components
                .responses
                .insert(problem.name.to_owned(), response.into());
        }
        components
            .schemas
            .insert("Problem".to_owned(), problem_schema());
        components
            .schemas
            .insert("ToolList".to_owned(), tool_list_schema());
        for input in INPUTS {
            input.derive(components);
        }
        add_twins(&mut document.paths);
    }
}

/// Adds the paths that answer like another one.
fn add_twins(paths: &mut Paths) {
    let chat_id = ParameterBuilder::new()
        .name("chat_id")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some("The chat"))
        .schema(Some(String::schema()))
        .build();
    let twins = [
        ("/healthz", "/health", "healthz", None),
        ("/mcp/c/{chat_id}", "/mcp", "deliver_to_chat", Some(chat_id)),
    ];
    for (path, of, operation_id, parameter) in twins {
        let mut twin = paths
            .paths
            .get(of)
            .expect("a path of this document")
            .clone();
        for operation in [&mut twin.get, &mut twin.post].into_iter().flatten() {
            operation.operation_id = Some(operation_id.to_owned());
            let parameters = operation.parameters.get_or_insert_default();
            parameters.splice(0..0, parameter.clone().map(Into::into));
        }
        paths.paths.insert(path.to_owned(), twin);
    }
}

fn add_security(components: &mut Components) {
    let bearer = |description: &str| {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(description));
        SecurityScheme::Http(scheme.build())
    };
    let header = |description: &str| {
        let key = ApiKeyValue::with_description("X-Foreword-Key", description);
        SecurityScheme::ApiKey(ApiKey::Header(key))
    };
    let schemes = [
        ("api_key", bearer("An API key")),
        ("api_key_header", header("An API key; also as `x-api-key`")),
        ("admin_key", bearer("An admin key")),
        (
            "admin_key_header",
            header("An admin key; also as `x-api-key`"),
        ),
    ];
    for (name, scheme) in schemes {
        components.add_security_scheme(name, scheme);
    }
}

/// A schema for requests, derived from the one for answers.
struct Input {
    name: &'static str,
    of: &'static str,
    /// What a request has to say; everything else may be left out.
    required: &'static [&'static str],
    /// What only the server can say.
    without: &'static [&'static str],
}

const INPUTS: &[Input] = &[
    Input {
        name: "PromptSectionInput",
        of: "PromptSection",
        required: &[],
        without: &["shared"],
    },
    Input {
        name: "PromptSectionPatch",
        of: "PromptSection",
        required: &[],
        without: &["shared"],
    },
    Input {
        name: "PromptSectionEntry",
        of: "PromptSection",
        required: &["id"],
        without: &["shared"],
    },
    Input {
        name: "NewPromptProfile",
        of: "PromptProfile",
        required: &["id"],
        without: &[],
    },
    Input {
        name: "PromptProfileInput",
        of: "PromptProfile",
        required: &["sections"],
        without: &[],
    },
    Input {
        name: "PromptProfilePatch",
        of: "PromptProfile",
        required: &[],
        without: &[],
    },
    Input {
        name: "NewLibrarySection",
        of: "LibrarySection",
        required: &["id", "content"],
        without: &["used_by", "inline"],
    },
    Input {
        name: "LibrarySectionInput",
        of: "LibrarySection",
        required: &["content"],
        without: &["used_by", "inline"],
    },
    Input {
        name: "LibrarySectionPatch",
        of: "LibrarySection",
        required: &[],
        without: &["used_by", "inline"],
    },
    Input {
        name: "GlobalPromptInput",
        of: "GlobalPrompt",
        required: &["content"],
        without: &[],
    },
    Input {
        name: "WorkspaceGuideInput",
        of: "WorkspaceGuide",
        required: &["content"],
        without: &[],
    },
];

impl Input {
    fn derive(&self, components: &mut Components) {
        let Some(RefOr::T(Schema::Object(answer))) = components.schemas.get(self.of) else {
            unreachable!("`{}` is an object of this document", self.of);
        };
        let mut input = answer.clone();
        input.required = self
            .required
            .iter()
            .map(|name| (*name).to_owned())
            .collect();
        for name in self.without {
            input.properties.swap_remove(*name);
        }
        if let Some(sections) = input.properties.get_mut("sections") {
            let entries = Ref::from_schema_name("PromptSectionEntry");
            *sections = ArrayBuilder::new().items(entries).build().into();
        }
        input.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
        input.example = None;
        let schema = Schema::Object(input).into();
        components.schemas.insert(self.name.to_owned(), schema);
    }
}

fn tool_list_schema() -> RefOr<Schema> {
    ObjectBuilder::new()
        .property("tools", tools::tool_list())
        .required("tools")
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
        .build()
        .into()
}

/// `application/problem+json`, RFC 9457.
fn problem_schema() -> RefOr<Schema> {
    let text = |description: &str| {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(description))
    };
    let number = ObjectBuilder::new().schema_type(Type::Integer);
    ObjectBuilder::new()
        .description(Some("Why a request was refused (RFC 9457)"))
        .property("type", text("Always `about:blank`"))
        .property("title", text("The status in words"))
        .property("status", number.description(Some("The status")))
        .property("detail", text("What happened, and what to do next"))
        .property("code", text("A stable word for programs, in snake case"))
        .property(
            "errors",
            ArrayBuilder::new()
                .items(FaultItem::schema())
                .description(Some("Every fault of the body")),
        )
        .required("type")
        .required("title")
        .required("status")
        .required("detail")
        .required("code")
        .build()
        .into()
}

/// A way in which requests are refused.
struct Problem {
    status: &'static str,
    name: &'static str,
    description: &'static str,
}

const PROBLEMS: &[Problem] = &[
    Problem {
        status: "304",
        name: "NotModified",
        description: "The client has it already",
    },
    Problem {
        status: "400",
        name: "BadRequest",
        description: "The query, a header or the JSON cannot be read",
    },
    Problem {
        status: "401",
        name: "Unauthorized",
        description: "No key, or an unknown one",
    },
    Problem {
        status: "403",
        name: "Forbidden",
        description: "The key does not open this",
    },
    Problem {
        status: "404",
        name: "NotFound",
        description: "There is no such item",
    },
    Problem {
        status: "409",
        name: "Conflict",
        description: "The library as it is does not allow it: the id is taken, the section is in use, the file is \
                      broken, …",
    },
    Problem {
        status: "412",
        name: "PreconditionFailed",
        description: "The item was changed since it was read; `ETag` is the current one",
    },
    Problem {
        status: "413",
        name: "PayloadTooLarge",
        description: "The body is too large",
    },
    Problem {
        status: "415",
        name: "UnsupportedMediaType",
        description: "The body is in another format",
    },
    Problem {
        status: "422",
        name: "UnprocessableEntity",
        description: "The body says something that cannot be; a problem lists every fault under `errors`",
    },
    Problem {
        status: "429",
        name: "TooManyRequests",
        description: "The upstream wants fewer requests; `Retry-After` says when",
    },
    Problem {
        status: "501",
        name: "NotImplemented",
        description: "No upstream is set; the message says which setting",
    },
    Problem {
        status: "502",
        name: "BadGateway",
        description: "The upstream cannot be reached, or its answer is none",
    },
    Problem {
        status: "504",
        name: "GatewayTimeout",
        description: "The upstream took too long",
    },
    Problem {
        status: "503",
        name: "ServiceUnavailable",
        description: "The server is busy, or the library cannot be stored right now; `detail` says what became of a change",
    },
];

impl Problem {
    fn response(&self) -> Response {
        let response = ResponseBuilder::new().description(self.description);
        if self.status == "304" {
            return response.build();
        }
        let problem = Ref::from_schema_name("Problem");
        let content = ContentBuilder::new().schema(Some(problem)).build();
        response
            .content("application/problem+json", content)
            .build()
    }
}

/// How MCP messages are refused before they are read.
pub(crate) struct MessageProblems;

impl IntoResponses for MessageProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&["400", "401", "413", "415"])
    }
}

/// The headers that name a session.
pub(crate) struct SessionParameters;

impl IntoParams for SessionParameters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let headers = [
            (
                "X-Chat-Id",
                "The chat; also `X-OpenWebUI-Chat-Id` and what is configured",
            ),
            (
                "X-User-Email",
                "The user's e-mail address; also `X-OpenWebUI-User-Email`",
            ),
            (
                "X-User-Name",
                "The user's name, percent-encoded; also `X-OpenWebUI-User-Name`",
            ),
            (
                "X-Profile-Id",
                "The profile; the library's default without it",
            ),
        ];
        headers
            .map(|(name, description)| header_parameter(name, description))
            .into()
    }
}

/// A header that may be left out.
pub(crate) fn header_parameter(name: &str, description: &str) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(String::schema()))
        .build()
}

/// How reading is refused.
pub(crate) struct ReadProblems;

impl IntoResponses for ReadProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&["304", "400", "401", "404"])
    }
}

/// How those without a key are refused, where nothing else can go wrong.
pub(crate) struct KeyProblems;

impl IntoResponses for KeyProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&["401"])
    }
}

/// How those without the admin key are refused, and queries that mean nothing.
pub(crate) struct AdminProblems;

impl IntoResponses for AdminProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&["400", "401", "403"])
    }
}

/// How a preview from a body is refused.
pub(crate) struct PreviewProblems;

impl IntoResponses for PreviewProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&["400", "401", "404", "413", "415", "422"])
    }
}

/// How chat requests of other APIs' shapes are refused, in those shapes.
pub(crate) struct ChatProblems;

impl IntoResponses for ChatProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let statuses = [
            "400", "401", "404", "413", "415", "422", "501", "502", "504",
        ];
        let refusals = PROBLEMS
            .iter()
            .filter(|problem| statuses.contains(&problem.status));
        let refusals = refusals.map(|problem| {
            let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("ChatRefusal")));
            let response = ResponseBuilder::new()
                .description(problem.description)
                .content("application/json", content.build());
            (problem.status.to_owned(), response.build().into())
        });
        refusals.collect()
    }
}

/// How a message of our own shape is refused.
pub(crate) struct TurnProblems;

impl IntoResponses for TurnProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            "400", "401", "404", "413", "415", "422", "429", "501", "502", "504",
        ])
    }
}

/// How requests for files are refused.
pub(crate) struct FileProblems;

impl IntoResponses for FileProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&["400", "401", "403", "404", "409"])
    }
}

/// How uploads are refused.
pub(crate) struct UploadProblems;

impl IntoResponses for UploadProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&["400", "401", "403", "404", "409", "413", "415"])
    }
}

/// How writing is refused.
pub(crate) struct WriteProblems;

impl IntoResponses for WriteProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            "400", "401", "403", "404", "409", "412", "413", "415", "422", "503",
        ])
    }
}

fn problems(statuses: &[&str]) -> BTreeMap<String, RefOr<Response>> {
    PROBLEMS
        .iter()
        .filter(|problem| statuses.contains(&problem.status))
        .map(|problem| {
            let reference = Ref::from_response_name(problem.name);
            (problem.status.to_owned(), RefOr::Ref(reference))
        })
        .collect()
}
