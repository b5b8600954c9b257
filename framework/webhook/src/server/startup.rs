//! The parts of a server that depend on the way in which API servers reach it: through a Service,
//! at a URL, or through memory.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use windlass_client::client::Client;
use windlass_core::{Error, ErrorKind};
use windlass_runtime::manager::{OperatorInfo, WebhookAccess, WebhookListener, bind};

use super::WebhookServer;
use super::out_of_cluster::{Host, OutsideConfigurations};
use super::status::{ServedTls, ServerStatus};
use super::tls::ServerTls;
use crate::certificates::{
    CertificateContext, CertificateSource, ServingCertificate, TrustingObjects,
};
use crate::configuration::ConfigurationOptions;
use crate::webhooks::Webhooks;

/// The parts of a server that is about to run.
pub(super) struct Opened<'a> {
    pub(super) listener: Arc<dyn WebhookListener>,
    /// `None`, as are source and TLS: connections come through memory.
    pub(super) certificate: Option<Arc<ServingCertificate>>,
    pub(super) source: Option<Arc<dyn CertificateSource>>,
    pub(super) tls: Option<ServerTls>,
    /// Configurations that are there while the server runs.
    pub(super) outside: Option<OutsideConfigurations<'a>>,
}

impl WebhookServer {
    /// Begins to listen.
    pub(super) async fn open(
        &self,
        (cx, names): (&CertificateContext, &OperatorInfo),
        status: &ServerStatus,
    ) -> Result<Opened<'_>, Error> {
        let options = ConfigurationOptions::new(&cx.operator, &cx.namespace);
        let options = options.own_kinds(&names.definitions);
        let outside = |access: &WebhookAccess| {
            OutsideConfigurations::new(&self.webhooks, options, access, &cx.client)
        };
        // The flag of the command line wins over the program.
        let access = names.webhooks.clone().or_else(|| self.url.as_deref().map(WebhookAccess::at));
        let Some(mut access) = access else {
            let listener = match &self.listener {
                Some(listener) => Arc::clone(listener),
                None => Arc::new(bind(self.address(), "webhooks").await?),
            };
            let (source, outside) = (self.source.clone(), None);
            return self.secured(listener, source, (cx, status), outside);
        };
        if let Some(listener) = &access.in_process {
            let _ = status.shown.set(ServedTls::Plain);
            return Ok(Opened {
                listener: Arc::clone(listener),
                certificate: None,
                source: None,
                tls: None,
                outside: Some(outside(&access)),
            });
        }
        let host = Host::of(&access.url)?;
        let listener: Arc<dyn WebhookListener> = match &self.listener {
            Some(listener) => Arc::clone(listener),
            None => {
                let address = host.choose(self.address, names.webhooks.is_some());
                let listener = bind(address, "webhooks").await?;
                let bound = bound(&listener)?;
                access.url = host.url(bound);
                tracing::info!(address = %bound, url = access.url, "webhooks are served");
                Arc::new(listener)
            }
        };
        let outside = outside(&access);
        let source = temporary(&host, outside.trusting(&cx.objects));
        self.secured(listener, source, (cx, status), Some(outside))
    }

    /// Returns the parts of a server with TLS.
    fn secured<'a>(
        &self,
        listener: Arc<dyn WebhookListener>,
        source: Option<Arc<dyn CertificateSource>>,
        (cx, status): (&CertificateContext, &ServerStatus),
        outside: Option<OutsideConfigurations<'a>>,
    ) -> Result<Opened<'a>, Error> {
        let Some(source) = source else {
            let text = "the webhook server has no certificates; give it a source by \
                        `WebhookServer::certificates`";
            return Err(Error::new(ErrorKind::Config, text));
        };
        let environment = cx.client.environment();
        let (clock, metrics) = (environment.clock.clone(), environment.metrics.clone());
        let certificate = ServingCertificate::new(self.tls.provider()?, clock.clone(), metrics);
        let shown = status.shown.get_or_init(|| ServedTls::Certificate(Arc::new(certificate)));
        let certificate = match shown {
            ServedTls::Certificate(certificate) => Arc::clone(certificate),
            ServedTls::Plain => {
                let text = "the webhook server was started without TLS before";
                return Err(Error::new(ErrorKind::Usage, text));
            }
        };
        let tls = ServerTls::new(self.tls.clone(), Arc::clone(&certificate), clock)?;
        let (certificate, source, tls) = (Some(certificate), Some(source), Some(tls));
        Ok(Opened { listener, certificate, source, tls, outside })
    }
}

/// Returns the objects by which API servers may ask an operator in a cluster.
pub(super) fn trusting_objects(webhooks: &Webhooks, operator: &str) -> TrustingObjects {
    TrustingObjects {
        service: ConfigurationOptions::new(operator, "").service(),
        at_url: None,
        has_validating: webhooks.registered().any(|hook| !hook.is_mutating),
        has_mutating: webhooks.registered().any(|hook| hook.is_mutating),
        definitions: webhooks.conversions().iter().map(|it| it.definition.clone()).collect(),
    }
}

fn bound(listener: &TcpListener) -> Result<SocketAddr, Error> {
    listener.local_addr().map_err(|error| {
        Error::new(ErrorKind::Config, "cannot read the address of the webhook server")
            .because(error)
    })
}

/// Returns the source of certificates for a host.
#[cfg(any(feature = "ring", feature = "aws-lc-rs"))]
fn temporary(
    host: &Host,
    objects: (Client, TrustingObjects),
) -> Option<Arc<dyn CertificateSource>> {
    Some(Arc::new(crate::certificates::TemporaryCertificates::new(&host.name, objects)))
}

/// Returns none: there is no cryptography to make certificates.
#[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
fn temporary(_: &Host, _: (Client, TrustingObjects)) -> Option<Arc<dyn CertificateSource>> {
    None
}
