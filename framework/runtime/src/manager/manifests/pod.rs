//! The Pod, the namespace, and the permitted connections: namespace, network policy, Deployment.

// DESIGN.md, 83: Manifests restrict the namespace and the network

use serde_json::{Value, json};

use super::ManifestBuilder;

/// Names of the container's ports.
const HEALTH: &str = "health";
const METRICS: &str = "metrics";

/// Ports of API servers: the Service's and that of most providers, kubeadm's and related tools',
/// `minikube`'s and `microk8s`'s.
const API_PORTS: [u16; 4] = [443, 6443, 8443, 16443];

/// Ports of DNS, and the port of `OpenShift`'s DNS behind the Service.
const DNS_PORTS: [(u16, &str); 4] = [(53, "UDP"), (53, "TCP"), (5353, "UDP"), (5353, "TCP")];

/// Returns the labels of the Pods of an operator.
pub(super) fn labels(name: &str) -> Value {
    json!({ "app.kubernetes.io/name": name, "control-plane": "controller-manager" })
}

impl ManifestBuilder<'_> {
    /// Returns the namespace, in which only Pods that need no privileges start. A namespace that
    /// others share gets no such label: the label would restrict their Pods, too.
    pub(super) fn own_namespace(&self) -> Value {
        let mut namespace = self.object("v1", "Namespace", json!({}));
        let is_shared = self.namespace == "default" || self.namespace.starts_with("kube-");
        if !is_shared {
            for mode in ["enforce", "warn"] {
                let label = format!("pod-security.kubernetes.io/{mode}");
                namespace["metadata"]["labels"][label] = json!("restricted");
            }
        }
        namespace
    }

    /// Returns a policy that lets through the connections that the operator needs, and no other.
    /// Policies add up: a further policy for the same Pods can allow any other connection of a
    /// runnable or a reconciler.
    ///
    /// No rule names its peers by their addresses or labels, except that for metrics: kubelets send
    /// probes from addresses of nodes, an API server mostly has the address of a node or an address
    /// outside of the cluster, and DNS may be a cache on the node. Some network plugins see the
    /// Service's port of the API server, others the port on which the server listens.
    pub(super) fn network_policy(&self) -> Value {
        let port = |port: Value, protocol: &str| json!({ "port": port, "protocol": protocol });
        let ingress: Vec<Value> = self
            .ports()
            .map(|(name, _)| match name {
                // Metrics are for Pods of the cluster, in whichever namespace the scraper runs.
                METRICS => json!({
                    "from": [{ "namespaceSelector": {} }], "ports": [port(json!(name), "TCP")],
                }),
                // Kubelets and API servers, which may be outside of the cluster.
                _ => json!({ "ports": [port(json!(name), "TCP")] }),
            })
            .collect();
        let api: Vec<Value> = API_PORTS.iter().map(|number| port(json!(number), "TCP")).collect();
        let dns = DNS_PORTS.map(|(number, protocol)| port(json!(number), protocol));
        self.object(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            json!({ "spec": {
                "podSelector": { "matchLabels": self.labels() },
                "policyTypes": ["Ingress", "Egress"],
                "ingress": ingress,
                "egress": [{ "ports": dns }, { "ports": api }],
            }}),
        )
    }

    /// Returns the ports that are served beyond the Pod, by name. Metrics may share that of the
    /// probes.
    fn ports(&self) -> impl Iterator<Item = (&'static str, u16)> {
        let health = self.manager.health.addr().map(|at| at.port());
        let metrics = self.manager.metrics.addr().filter(|at| !at.ip().is_loopback());
        let metrics = metrics.map(|at| at.port()).filter(|at| *at != 0 && Some(*at) != health);
        let named = [(HEALTH, health), (METRICS, metrics)];
        let own = named.into_iter().filter_map(|(name, port)| Some((name, port?)));
        own.chain(self.attached.ports.iter().copied())
    }

    /// Returns the labels by which the Pods are selected.
    fn labels(&self) -> Value {
        labels(self.name)
    }

    /// Returns the Deployment: a single replica, without privileges.
    pub(super) fn deployment(&self) -> Value {
        let labels = self.labels();
        // The process must have ended before the kubelet kills it: after the drain come events,
        // writes that may still be executed, the Lease and the caches, 12 s at the most.
        let grace = self.manager.drain.as_secs().saturating_add(15).min(i64::MAX as u64);
        let mut pod = json!({
            "serviceAccountName": self.name,
            "terminationGracePeriodSeconds": grace,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": 65532,
                "runAsGroup": 65532,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": [self.container()],
        });
        let secrets = self.attached.secrets.iter();
        let volumes = secrets.map(
            |(volume, secret, _)| json!({ "name": volume, "secret": { "secretName": secret } }),
        );
        let volumes: Vec<Value> = volumes.collect();
        if !volumes.is_empty() {
            pod["volumes"] = json!(volumes);
        }
        self.object(
            "apps/v1",
            "Deployment",
            json!({ "spec": {
                "replicas": 1,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": pod,
                },
            }}),
        )
    }

    /// Returns the container: image, environment, limits, probes and ports.
    fn container(&self) -> Value {
        let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
        let mut environment =
            vec![field("POD_NAME", "metadata.name"), field("POD_NAMESPACE", "metadata.namespace")];
        if self.own_namespace_only {
            environment.push(field("WATCH_NAMESPACE", "metadata.namespace"));
        } else if !self.manager.namespaces.is_empty() {
            let namespaces = self.manager.namespaces.join(",");
            environment.push(json!({ "name": "WATCH_NAMESPACE", "value": namespaces }));
        }
        let mut container = json!({
            "name": "manager",
            "image": self.image,
            "env": environment,
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": { "drop": ["ALL"] },
                "privileged": false,
                "readOnlyRootFilesystem": true,
                "runAsNonRoot": true,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "resources": {
                "requests": { "cpu": "10m", "memory": "64Mi" },
                "limits": { "cpu": "500m", "memory": "128Mi" },
            },
        });
        if !self.args.is_empty() {
            container["args"] = json!(self.args);
        }
        if self.manager.health.addr().is_some() {
            let probe = |path: &str, delay: u32, period: u32| {
                json!({
                    "httpGet": { "path": path, "port": HEALTH },
                    "initialDelaySeconds": delay,
                    "periodSeconds": period,
                })
            };
            container["livenessProbe"] = probe("/healthz", 15, 20);
            container["readinessProbe"] = probe("/readyz", 5, 10);
        }
        let ports = self.ports().map(|(name, at)| json!({ "name": name, "containerPort": at }));
        let ports: Vec<Value> = ports.collect();
        if !ports.is_empty() {
            container["ports"] = json!(ports);
        }
        let secrets = self.attached.secrets.iter();
        let mounts = secrets.map(
            |(volume, _, path)| json!({ "name": volume, "mountPath": path, "readOnly": true }),
        );
        let mounts: Vec<Value> = mounts.collect();
        if !mounts.is_empty() {
            container["volumeMounts"] = json!(mounts);
        }
        container
    }
}
