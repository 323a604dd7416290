//! The API as OpenAPI describes it.
//!
//! `openapi.json` is part of the program. A test makes it from the types and routes themselves and compares; with
//! `SATF_WRITE_OPENAPI=1` it writes the file anew. So the program need not carry what describes it.

use axum::http::StatusCode;
use axum::response::Response;

use crate::error::json_bytes;

/// The description, in JSON.
pub fn description() -> &'static str {
    include_str!("openapi.json")
}

pub(crate) async fn openapi() -> Response {
    json_bytes(StatusCode::OK, description().as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use utoipa::openapi::path::Operation;
    use utoipa::openapi::schema::{
        AdditionalProperties, ArrayBuilder, KnownFormat, ObjectBuilder, OneOfBuilder, SchemaFormat, Type,
    };
    use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
    use utoipa::openapi::{ContentBuilder, OpenApi as Document, Ref, RefOr, ResponseBuilder, Schema};
    use utoipa::{OpenApi, PartialSchema, ToSchema};

    use crate::error::ErrorBody;
    use crate::routes::{admin, health, inference, items, models, recommend};
    use crate::wire::{AnyId, Step};

    fn id_schema() -> Schema {
        let id = OneOfBuilder::new()
            .item(ObjectBuilder::new().schema_type(Type::String))
            .item(
                ObjectBuilder::new()
                    .schema_type(Type::Integer)
                    .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64))),
            )
            .description(Some("An id: a string, or an integer of 64 bits."));
        Schema::OneOf(id.build())
    }

    impl PartialSchema for AnyId {
        fn schema() -> RefOr<Schema> {
            RefOr::T(id_schema())
        }
    }

    impl ToSchema for AnyId {
        fn name() -> Cow<'static, str> {
            "Id".into()
        }
    }

    impl PartialSchema for Step {
        fn schema() -> RefOr<Schema> {
            let id = || Ref::from_schema_name("Id");
            let time = OneOfBuilder::new()
                .item(ObjectBuilder::new().schema_type(Type::Integer))
                .item(ObjectBuilder::new().schema_type(Type::String))
                .description(Some("Seconds since 1970, or a date and time such as 2024-05-17T08:30:00Z."));
            let timed = ObjectBuilder::new()
                .property("item_id", id())
                .property("time", time)
                .required("item_id")
                .additional_properties(Some(AdditionalProperties::FreeForm(false)));
            let step =
                OneOfBuilder::new().item(id()).item(ArrayBuilder::new().items(id())).item(timed).description(
                    Some("An item; several items taken together; or an item and when it was taken."),
                );
            RefOr::T(Schema::OneOf(step.build()))
        }
    }

    impl ToSchema for Step {
        fn name() -> Cow<'static, str> {
            "Step".into()
        }

        fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
            schemas.push(("Id".to_owned(), AnyId::schema()));
        }
    }

    #[derive(OpenApi)]
    #[openapi(
        info(
            title = "satf",
            description = "What comes next: recommendations from ordered histories.\n\nEvery response carries x-request-id. A key, where the \
                server has some, is given as `Authorization: Bearer KEY`."
        ),
        paths(
            recommend::recommend,
            recommend::batch,
            recommend::session,
            items::similar,
            items::popular,
            items::complete,
            items::item,
            models::model,
            models::models,
            models::stats,
            models::metrics,
            health::live,
            health::ready,
            admin::reload,
            inference::server,
            inference::model,
            inference::ready,
        ),
        components(schemas(AnyId, Step, ErrorBody))
    )]
    struct Api;

    /// What every route may answer besides.
    fn add_refusals(operation: &mut Operation) {
        let refusal = |text: &str| {
            let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorBody"))).build();
            ResponseBuilder::new().description(text).content("application/json", content).build()
        };
        let responses = &mut operation.responses.responses;
        responses.insert(
            "4XX".to_owned(),
            RefOr::T(refusal("The request cannot be answered: the message says why.")),
        );
        let text = "Overload: try again after the seconds of Retry-After.";
        responses.insert("503".to_owned(), RefOr::T(refusal(text)));
    }

    fn document() -> Document {
        let mut api = Api::openapi();
        let bearer = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
        if let Some(components) = &mut api.components {
            components.security_schemes.insert("key".to_owned(), RefOr::T(bearer));
        }
        // A key, or none where the server has none.
        api.security = Some(vec![
            SecurityRequirement::default(),
            SecurityRequirement::new("key", std::iter::empty::<String>()),
        ]);
        for (path, item) in &mut api.paths.paths {
            let is_health = path.contains("/health/");
            for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
                if !is_health {
                    add_refusals(operation);
                }
            }
        }
        api
    }

    #[test]
    fn the_description_is_that_of_the_types_and_routes() {
        let made = format!("{}\n", document().to_pretty_json().unwrap());
        if std::env::var_os("SATF_WRITE_OPENAPI").is_some() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/openapi.json"), &made).unwrap();
            return;
        }
        assert!(
            made == super::description(),
            "src/openapi.json is not what the types and routes say; SATF_WRITE_OPENAPI=1 cargo test -p satf-server --lib writes it"
        );
    }
}
