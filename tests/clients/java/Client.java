// The Java client fabric8 against the server of $KUBECONFIG: one method per case. Its watches, informers,
// exec and port-forwards go over WebSocket.

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.GenericKubernetesResourceBuilder;
import io.fabric8.kubernetes.api.model.ListOptionsBuilder;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinition;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.LocalPortForward;
import io.fabric8.kubernetes.client.Watch;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.ExecWatch;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.dsl.base.ResourceDefinitionContext;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

public final class Client {
  private static final String SPACE = "java";
  private static final int WAIT = 20;
  private final KubernetesClient client;

  private Client(KubernetesClient client) {
    this.client = client;
  }

  /** A case, which throws if the server does otherwise. */
  private interface Case {
    void run() throws Exception;
  }

  private static void check(Object got, Object want) {
    if (!Objects.equals(got, want)) {
      throw new AssertionError(got + " instead of " + want);
    }
  }

  private static void refused(int code, String reason, Callable<?> call) throws Exception {
    try {
      call.call();
    } catch (KubernetesClientException error) {
      check(error.getCode(), code);
      check(error.getStatus().getReason(), reason);
      return;
    }
    throw new AssertionError("not refused: " + reason);
  }

  private static ConfigMap configMap(String name, Map<String, String> labels, Map<String, String> data) {
    return new ConfigMapBuilder().withNewMetadata().withName(name).withNamespace(SPACE).withLabels(labels)
        .endMetadata().withData(data).build();
  }

  private ConfigMap create(ConfigMap object) {
    return client.configMaps().resource(object).create();
  }

  private ConfigMap read(String name) {
    return client.configMaps().inNamespace(SPACE).withName(name).get();
  }

  private void objectsAreCreatedReadReplacedAndDeleted() throws Exception {
    ConfigMap made = create(configMap("crud", null, Map.of("a", "1")));
    refused(409, "AlreadyExists", () -> create(configMap("crud", null, Map.of())));
    ConfigMap next = new ConfigMapBuilder(read("crud")).withData(Map.of("a", "2")).build();
    check(next.getMetadata().getUid(), made.getMetadata().getUid());
    check(client.configMaps().resource(next).update().getData(), Map.of("a", "2"));
    refused(409, "Conflict",
        () -> client.configMaps().resource(made).lockResourceVersion(made.getMetadata().getResourceVersion()).update());
    check(client.configMaps().resource(made).delete().size(), 1);
    check(read("crud"), null);
    refused(422, "Invalid", () -> create(configMap("A B", null, Map.of())));
  }

  private void patchesOfFourKindsAreRead() {
    var one = client.configMaps().resource(create(configMap("patched", null, Map.of("a", "1", "b", "1"))));
    String merge = "{\"data\":{\"a\":null,\"c\":\"3\"}}";
    check(one.patch(PatchContext.of(PatchType.JSON_MERGE), merge).getData(), Map.of("b", "1", "c", "3"));
    String operations = "[{\"op\":\"replace\",\"path\":\"/data/c\",\"value\":\"4\"}]";
    check(one.patch(PatchContext.of(PatchType.JSON), operations).getData(), Map.of("b", "1", "c", "4"));
    String strategic = "{\"data\":{\"c\":null}}";
    check(one.patch(PatchContext.of(PatchType.STRATEGIC_MERGE), strategic).getData(), Map.of("b", "1"));
    var intent = client.configMaps().resource(configMap("patched", null, Map.of("e", "6")));
    check(intent.fieldManager("java").serverSideApply().getData(), Map.of("b", "1", "e", "6"));
    refused409(() -> client.configMaps().resource(configMap("patched", null, Map.of("e", "7")))
        .fieldManager("other").serverSideApply());
  }

  private static void refused409(Callable<?> call) {
    try {
      refused(409, "Conflict", call);
    } catch (Exception error) {
      throw new AssertionError(error);
    }
  }

  private void listsComeInPagesAndBySelectors() {
    for (int number = 0; number < 5; number++) {
      create(configMap("page-" + number, Map.of("half", "" + number % 2, "paged", "yes"), Map.of()));
    }
    List<String> names = new ArrayList<>();
    String token = null;
    do {
      var options = new ListOptionsBuilder().withLimit(2L).withContinue(token).build();
      var page = client.configMaps().inNamespace(SPACE).withLabel("paged").list(options);
      page.getItems().forEach(item -> names.add(item.getMetadata().getName()));
      token = page.getMetadata().getContinue();
    } while (token != null && !token.isEmpty());
    check(names, List.of("page-0", "page-1", "page-2", "page-3", "page-4"));
    var half = client.configMaps().inNamespace(SPACE).withLabel("half", "1").withLabelIn("paged", "yes", "no").list();
    check(half.getItems().size(), 2);
  }

  private void aWatchBringsAllChanges() throws Exception {
    BlockingQueue<String> seen = new LinkedBlockingQueue<>();
    Watcher<ConfigMap> watcher = new Watcher<>() {
      @Override
      public void eventReceived(Action action, ConfigMap object) {
        seen.add(action + " " + object.getData().get("a"));
      }

      @Override
      public void onClose(WatcherException cause) {
        seen.add("closed " + cause);
      }
    };
    try (Watch watch = client.configMaps().inNamespace(SPACE).withLabel("w", "1").watch(watcher)) {
      var one = client.configMaps().resource(create(configMap("watched", Map.of("w", "1"), Map.of("a", "1"))));
      one.patch(PatchContext.of(PatchType.JSON_MERGE), "{\"data\":{\"a\":\"2\"}}");
      one.delete();
      for (String event : List.of("ADDED 1", "MODIFIED 2", "DELETED 2")) {
        check(seen.poll(WAIT, TimeUnit.SECONDS), event);
      }
    }
  }

  private void anInformerFollowsAllWrites() throws Exception {
    BlockingQueue<String> calls = new LinkedBlockingQueue<>();
    create(configMap("informed-0", Map.of("informed", "yes"), Map.of("a", "1")));
    ResourceEventHandler<ConfigMap> handler = new ResourceEventHandler<>() {
      @Override
      public void onAdd(ConfigMap object) {
        calls.add("add " + object.getMetadata().getName());
      }

      @Override
      public void onUpdate(ConfigMap old, ConfigMap object) {
        calls.add("update " + object.getMetadata().getName());
      }

      @Override
      public void onDelete(ConfigMap object, boolean unknown) {
        calls.add("delete " + object.getMetadata().getName());
      }
    };
    try (SharedIndexInformer<ConfigMap> informer =
        client.configMaps().inNamespace(SPACE).withLabel("informed").inform(handler)) {
      check(calls.poll(WAIT, TimeUnit.SECONDS), "add informed-0");
      var one = client.configMaps().resource(create(configMap("informed-1", Map.of("informed", "yes"), Map.of())));
      check(calls.poll(WAIT, TimeUnit.SECONDS), "add informed-1");
      one.patch(PatchContext.of(PatchType.JSON_MERGE), "{\"data\":{\"a\":\"2\"}}");
      check(calls.poll(WAIT, TimeUnit.SECONDS), "update informed-1");
      client.configMaps().inNamespace(SPACE).withName("informed-0").delete();
      check(calls.poll(WAIT, TimeUnit.SECONDS), "delete informed-0");
      check(informer.getStore().list().size(), 1);
      check(informer.getStore().list().get(0).getData(), Map.of("a", "2"));
    }
  }

  private void customResourcesAreServedAfterTheirDefinition() throws Exception {
    String definition = """
        apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: { name: notes.java.example }
        spec:
          group: java.example
          scope: Namespaced
          names: { plural: notes, kind: Note }
          versions:
          - name: v1
            served: true
            storage: true
            subresources: { status: {} }
            schema:
              openAPIV3Schema:
                type: object
                properties:
                  spec: { type: object, properties: { text: { type: string }, n: { type: integer, default: 2 } } }
        """;
    client.load(new ByteArrayInputStream(definition.getBytes(StandardCharsets.UTF_8))).create();
    client.apiextensions().v1().customResourceDefinitions().withName("notes.java.example")
        .waitUntilCondition(Client::isEstablished, WAIT, TimeUnit.SECONDS);
    var context = new ResourceDefinitionContext.Builder().withGroup("java.example").withVersion("v1")
        .withKind("Note").withPlural("notes").withNamespaced(true).build();
    var notes = client.genericKubernetesResources(context).inNamespace(SPACE);
    GenericKubernetesResource made = notes.resource(note("n", "x")).create();
    check(made.<Object>get("spec", "n"), 2);
    refused(422, "Invalid", () -> notes.resource(note("m", 5)).create());
    check(notes.list().getItems().size(), 1);
  }

  private static GenericKubernetesResource note(String name, Object text) {
    return new GenericKubernetesResourceBuilder().withApiVersion("java.example/v1").withKind("Note")
        .withNewMetadata().withName(name).endMetadata()
        .addToAdditionalProperties("spec", Map.of("text", text)).build();
  }

  private static boolean isEstablished(CustomResourceDefinition definition) {
    return definition != null && definition.getStatus() != null && definition.getStatus().getConditions().stream()
        .anyMatch(one -> one.getType().equals("Established") && one.getStatus().equals("True"));
  }

  private void podsAreReachedOverWebSockets() throws Exception {
    var pod = new PodBuilder().withNewMetadata().withName("p").withNamespace(SPACE)
        .addToAnnotations("windlass.dev/log", "one\ntwo\n").endMetadata()
        .withNewSpec().addNewContainer().withName("c").withImage("i").endContainer().endSpec().build();
    client.pods().resource(pod).create();
    var running = client.pods().inNamespace(SPACE).withName("p");
    running.waitUntilReady(WAIT, TimeUnit.SECONDS);
    check(running.tailingLines(1).getLog(), "two\n");
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (ExecWatch exec = running.writingOutput(out).exec("echo", "a b")) {
      check(exec.exitCode().get(WAIT, TimeUnit.SECONDS), 0);
    }
    check(out.toString(StandardCharsets.UTF_8), "echo a b\n");
    try (LocalPortForward forward = running.portForward(80);
        Socket socket = new Socket("127.0.0.1", forward.getLocalPort())) {
      socket.getOutputStream().write("hello".getBytes(StandardCharsets.UTF_8));
      check(new String(socket.getInputStream().readNBytes(5), StandardCharsets.UTF_8), "hello");
    }
  }

  private void workloadsBecomeReadyAndScale() {
    String manifest = """
        apiVersion: apps/v1
        kind: Deployment
        metadata: { name: web, namespace: java }
        spec:
          replicas: 2
          selector: { matchLabels: { app: web } }
          template:
            metadata: { labels: { app: web } }
            spec: { containers: [{ name: c, image: i }] }
        """;
    client.load(new ByteArrayInputStream(manifest.getBytes(StandardCharsets.UTF_8))).serverSideApply();
    var web = client.apps().deployments().inNamespace(SPACE).withName("web");
    Deployment ready = web.waitUntilReady(WAIT, TimeUnit.SECONDS);
    check(ready.getStatus().getReadyReplicas(), 2);
    check(web.scale(1).getSpec().getReplicas(), 1);
  }

  /** Plays all cases, and ends with 1 if one fails. */
  public static void main(String[] arguments) throws Exception {
    Config config = Config.fromKubeconfig(new File(System.getenv("KUBECONFIG")));
    config.setRequestRetryBackoffLimit(0);
    int failed = 0;
    Map<String, Case> cases;
    try (KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build()) {
      Client all = new Client(client);
      client.namespaces().resource(
          new NamespaceBuilder().withNewMetadata().withName(SPACE).endMetadata().build()).create();
      cases = new java.util.LinkedHashMap<>();
      cases.put("objectsAreCreatedReadReplacedAndDeleted", all::objectsAreCreatedReadReplacedAndDeleted);
      cases.put("patchesOfFourKindsAreRead", all::patchesOfFourKindsAreRead);
      cases.put("listsComeInPagesAndBySelectors", all::listsComeInPagesAndBySelectors);
      cases.put("aWatchBringsAllChanges", all::aWatchBringsAllChanges);
      cases.put("anInformerFollowsAllWrites", all::anInformerFollowsAllWrites);
      cases.put("customResourcesAreServedAfterTheirDefinition", all::customResourcesAreServedAfterTheirDefinition);
      cases.put("podsAreReachedOverWebSockets", all::podsAreReachedOverWebSockets);
      cases.put("workloadsBecomeReadyAndScale", all::workloadsBecomeReadyAndScale);
      for (var one : cases.entrySet()) {
        try {
          one.getValue().run();
        } catch (Throwable error) {
          failed++;
          System.out.println("failed: java: " + one.getKey());
          error.printStackTrace(System.out);
        }
      }
    }
    System.out.println("java: " + (cases.size() - failed) + " passed, " + failed + " failed");
    System.exit(failed == 0 ? 0 : 1);
  }
}
