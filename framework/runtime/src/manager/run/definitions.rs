//! The definitions of an operator: checked, or installed, before its caches are filled.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::Operator;
use crate::manager::install;
use windlass_client::client::Client;
use windlass_core::error::Error;

impl Operator {
    /// Returns the definitions, or the first error of a derive.
    pub(super) fn definitions(&self) -> Result<Vec<CustomResourceDefinition>, Error> {
        let copy = |definition: &Result<CustomResourceDefinition, Error>| match definition {
            Ok(definition) => Ok(definition.clone()),
            Err(error) => Err(Error::new(error.kind(), error.to_string())),
        };
        self.definitions.iter().map(copy).collect()
    }

    /// Whether the kinds of all definitions are served. Without an election they are installed
    /// first.
    pub(super) async fn check_or_install(
        &self,
        definitions: &[CustomResourceDefinition],
    ) -> Result<bool, Error> {
        if definitions.is_empty() {
            return Ok(true);
        }
        let waiting = "installing custom resource definitions";
        *self.status.starting.lock() = Some(waiting.to_owned());
        if self.status.elector.is_some() {
            let check =
                Box::pin(install::check_definitions(&self.client, definitions, self.force_install))
                    .await?;
            *self.status.kept_definitions.lock() = check.kept;
            return Ok(check.are_served);
        }
        self.install(&self.client, definitions).await.map(|()| true)
    }

    /// Installs the definitions, and publishes those of others that were left alone.
    pub(super) async fn install(
        &self,
        client: &Client,
        definitions: &[CustomResourceDefinition],
    ) -> Result<(), Error> {
        let kept = install::install_all(client, definitions, self.force_install).await?;
        *self.status.kept_definitions.lock() = kept;
        Ok(())
    }
}
