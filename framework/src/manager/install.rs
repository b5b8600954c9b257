//! Makes an API server serve custom resources, and waits until it does.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionCondition,
};
use tracing::{debug, info};

use crate::api::Api;
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::resource::ResourceExt;

/// From the first try until everything is served.
const LIMIT: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Applies the definitions and waits until every one is established.
///
/// # Errors
/// What the API server says against a definition at once; anything else after a minute.
pub(crate) async fn install_all(
    client: &Client,
    definitions: &[CustomResourceDefinition],
) -> Result<(), Error> {
    let api: Api<CustomResourceDefinition> = client.all();
    let clock = &client.seams().clock;
    let mut last = None;
    let work = async {
        for definition in definitions {
            install(client, &api, definition, &mut last).await?;
        }
        Ok(())
    };
    let outcome = clock.within(LIMIT, work).await;
    outcome.unwrap_or_else(|| {
        let names: Vec<&str> = definitions.iter().map(ResourceExt::name).collect();
        let text = format!(
            "the custom resource definitions {names:?} were not served within {} s; look at their \
             conditions and at the API server",
            LIMIT.as_secs()
        );
        let error = Error::new(ErrorKind::Timeout, text);
        Err(match last {
            Some(cause) => error.because(cause),
            None => error,
        })
    })
}

async fn install(
    client: &Client,
    api: &Api<CustomResourceDefinition>,
    definition: &CustomResourceDefinition,
    last: &mut Option<Error>,
) -> Result<(), Error> {
    let name = definition.name();
    let mut pause = FIRST_PAUSE;
    let mut applied = false;
    loop {
        let step =
            if applied { api.get(name).await } else { api.apply(name, definition).force().await };
        match step {
            Ok(stored) if served(&stored)? => {
                info!(definition = name, "custom resource definition is served");
                return Ok(());
            }
            Ok(_) => applied = true,
            Err(error) if worth_retrying(error.kind()) => {
                debug!(definition = name, error = ?error, "installing again");
                *last = Some(error);
            }
            Err(error) => {
                let text = format!(
                    "cannot install the custom resource definition {name:?}; apply the operator's \
                     manifests, which hold it, or leave out `install`"
                );
                return Err(Error::new(error.kind(), text).because(error));
            }
        }
        client.seams().clock.sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn worth_retrying(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Ambiguous
            | ErrorKind::Conflict
            | ErrorKind::Connect
            | ErrorKind::NotFound
            | ErrorKind::Server
            | ErrorKind::Timeout
            | ErrorKind::TooManyRequests
            | ErrorKind::Transport
    )
}

/// Is it established? An error when it never will be.
fn served(definition: &CustomResourceDefinition) -> Result<bool, Error> {
    let conditions = definition.status.as_ref().and_then(|status| status.conditions.as_deref());
    let condition = |kind: &str| -> Option<&CustomResourceDefinitionCondition> {
        conditions?.iter().find(|condition| condition.type_ == kind)
    };
    if let Some(refused) = condition("NamesAccepted").filter(|names| names.status == "False") {
        let text = format!(
            "the API server does not accept the names of {:?}: {}; another definition has them",
            definition.name(),
            refused.message.as_deref().unwrap_or("no message")
        );
        return Err(Error::new(ErrorKind::Config, text));
    }
    Ok(condition("Established").is_some_and(|established| established.status == "True"))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionStatus;

    use super::*;

    fn with(conditions: &[(&str, &str)]) -> CustomResourceDefinition {
        let conditions = conditions
            .iter()
            .map(|(kind, status)| CustomResourceDefinitionCondition {
                type_: (*kind).to_owned(),
                status: (*status).to_owned(),
                ..CustomResourceDefinitionCondition::default()
            })
            .collect();
        CustomResourceDefinition {
            status: Some(CustomResourceDefinitionStatus {
                conditions: Some(conditions),
                ..CustomResourceDefinitionStatus::default()
            }),
            ..CustomResourceDefinition::default()
        }
    }

    #[test]
    fn a_definition_is_served_once_it_is_established() {
        assert!(!served(&CustomResourceDefinition::default()).unwrap());
        assert!(!served(&with(&[("NamesAccepted", "True")])).unwrap());
        assert!(served(&with(&[("NamesAccepted", "True"), ("Established", "True")])).unwrap());
    }

    #[test]
    fn names_that_clash_are_an_error_at_once() {
        let error = served(&with(&[("NamesAccepted", "False")])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
    }
}
