package peers;

import com.sun.management.OperatingSystemMXBean;
import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.api.model.ObjectMeta;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.api.model.Secret;
import io.fabric8.kubernetes.api.model.SecretBuilder;
import io.fabric8.kubernetes.api.model.Service;
import io.fabric8.kubernetes.api.model.ServiceAccount;
import io.fabric8.kubernetes.api.model.ServiceAccountBuilder;
import io.fabric8.kubernetes.api.model.ServiceBuilder;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;
import io.javaoperatorsdk.operator.Operator;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.EventSourceContext;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import io.javaoperatorsdk.operator.api.reconciler.Workflow;
import io.javaoperatorsdk.operator.api.reconciler.dependent.Dependent;
import io.javaoperatorsdk.operator.processing.dependent.kubernetes.CRUDKubernetesDependentResource;
import io.javaoperatorsdk.operator.processing.event.ResourceID;
import io.javaoperatorsdk.operator.processing.event.source.EventSource;
import io.javaoperatorsdk.operator.processing.event.source.inbound.SimpleInboundEventSource;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/** An object with five children in java-operator-sdk, by a workflow of dependents, for ../run. */
public final class Main {
  public static final class SiteSpec {
    public String host;
    public int replicas;
  }

  @Group("peers.example")
  @Version("v1")
  public static final class Site extends CustomResource<SiteSpec, Void> implements Namespaced {}

  static ObjectMeta named(Site site) {
    return new ObjectMetaBuilder()
        .withName(site.getMetadata().getName())
        .withNamespace(site.getMetadata().getNamespace())
        .build();
  }

  public static final class Settings extends CRUDKubernetesDependentResource<ConfigMap, Site> {
    public Settings() {
      super(ConfigMap.class);
    }

    @Override
    protected ConfigMap desired(Site site, Context<Site> context) {
      return new ConfigMapBuilder()
          .withMetadata(named(site))
          .addToData("host", site.getSpec().host)
          .addToData("index.html", "<h1>Welcome</h1>")
          .build();
    }
  }

  public static final class Login extends CRUDKubernetesDependentResource<Secret, Site> {
    public Login() {
      super(Secret.class);
    }

    @Override
    protected Secret desired(Site site, Context<Site> context) {
      byte[] user = site.getSpec().host.getBytes(StandardCharsets.UTF_8);
      return new SecretBuilder()
          .withMetadata(named(site))
          .withType("Opaque")
          .addToData("user", Base64.getEncoder().encodeToString(user))
          .build();
    }
  }

  public static final class Account extends CRUDKubernetesDependentResource<ServiceAccount, Site> {
    public Account() {
      super(ServiceAccount.class);
    }

    @Override
    protected ServiceAccount desired(Site site, Context<Site> context) {
      return new ServiceAccountBuilder().withMetadata(named(site)).build();
    }
  }

  public static final class App extends CRUDKubernetesDependentResource<Deployment, Site> {
    public App() {
      super(Deployment.class);
    }

    @Override
    protected Deployment desired(Site site, Context<Site> context) {
      Map<String, String> labels = Map.of("app", site.getMetadata().getName());
      return new DeploymentBuilder()
          .withMetadata(named(site))
          .withNewSpec()
          .withReplicas(site.getSpec().replicas)
          .withNewSelector()
          .withMatchLabels(labels)
          .endSelector()
          .withNewTemplate()
          .withNewMetadata()
          .withLabels(labels)
          .endMetadata()
          .withNewSpec()
          .withServiceAccountName(site.getMetadata().getName())
          .addNewContainer()
          .withName("nginx")
          .withImage("nginx:1.29")
          .addNewPort()
          .withContainerPort(80)
          .endPort()
          .addNewEnv()
          .withName("HOST")
          .withValue(site.getSpec().host)
          .endEnv()
          .endContainer()
          .endSpec()
          .endTemplate()
          .endSpec()
          .build();
    }
  }

  public static final class Front extends CRUDKubernetesDependentResource<Service, Site> {
    public Front() {
      super(Service.class);
    }

    @Override
    protected Service desired(Site site, Context<Site> context) {
      return new ServiceBuilder()
          .withMetadata(named(site))
          .withNewSpec()
          .withSelector(Map.of("app", site.getMetadata().getName()))
          .addNewPort()
          .withPort(80)
          .endPort()
          .endSpec()
          .build();
    }
  }

  static final AtomicLong RECONCILES = new AtomicLong();
  static final SimpleInboundEventSource<Site> ROUNDS = new SimpleInboundEventSource<>("rounds");

  @Workflow(
      dependents = {
        @Dependent(name = "config", type = Settings.class),
        @Dependent(name = "login", type = Login.class),
        @Dependent(name = "account", type = Account.class),
        @Dependent(name = "app", type = App.class, dependsOn = {"config", "login", "account"}),
        @Dependent(name = "service", type = Front.class, dependsOn = "app"),
      })
  public static final class Sites implements Reconciler<Site> {
    @Override
    public List<EventSource<?, Site>> prepareEventSources(EventSourceContext<Site> context) {
      return List.of(ROUNDS);
    }

    @Override
    public UpdateControl<Site> reconcile(Site site, Context<Site> context) {
      RECONCILES.incrementAndGet();
      return UpdateControl.noUpdate();
    }
  }

  /** The same without children. */
  public static final class Bare implements Reconciler<Site> {
    @Override
    public List<EventSource<?, Site>> prepareEventSources(EventSourceContext<Site> context) {
      return List.of(ROUNDS);
    }

    @Override
    public UpdateControl<Site> reconcile(Site site, Context<Site> context) {
      RECONCILES.incrementAndGet();
      return UpdateControl.noUpdate();
    }
  }

  /** Waits until no reconcile has ended for two seconds. */
  static void rest(long least) throws InterruptedException {
    for (long before = -1; ; Thread.sleep(2000)) {
      long now = RECONCILES.get();
      if (now == before && now >= least) {
        return;
      }
      before = now;
    }
  }

  public static void main(String[] words) throws Exception {
    long count = Long.parseLong(words[1]);
    long rounds = Long.parseLong(words[2]);
    boolean isBare = words.length > 3 && words[3].equals("bare");
    var config = Config.fromKubeconfig(Files.readString(Path.of(words[0])));
    var client = new KubernetesClientBuilder().withConfig(config).build();
    var operator = new Operator(overrides -> overrides.withKubernetesClient(client));
    operator.register(isBare ? new Bare() : new Sites());
    operator.start();
    rest(count);
    System.out.println("settled");
    var system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    var lines = new BufferedReader(new InputStreamReader(System.in));
    while (lines.readLine() != null) {
      long began = system.getProcessCpuTime();
      long before = RECONCILES.get();
      for (long round = 1; round <= rounds; round++) {
        for (long at = 0; at < count; at++) {
          ROUNDS.propagateEvent(new ResourceID("site-" + at, "default"));
        }
        while (RECONCILES.get() < before + round * count) {
          Thread.sleep(1);
        }
      }
      System.out.println((system.getProcessCpuTime() - began) + " " + (RECONCILES.get() - before));
    }
    System.exit(0);
  }
}
