package main

import (
	"bytes"
	"context"
	"io"
	"strings"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/remotecommand"
)

func kinds(w world) {
	found := value(w.client.Discovery().ServerVersion())
	check(strings.HasPrefix(found.GitVersion, "v1.36"), true)
	_, lists, err := w.client.Discovery().ServerGroupsAndResources()
	must(err)
	counted := map[string]int{}
	for _, list := range lists {
		counted[list.GroupVersion] = len(list.APIResources)
	}
	for _, version := range []string{"v1", "apps/v1", "batch/v1", "coordination.k8s.io/v1", group + "/v1"} {
		if counted[version] == 0 {
			fail("no resources of %s", version)
		}
	}
	cached := memory.NewMemCacheClient(w.client.Discovery())
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	mapping := value(mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}))
	check(mapping.Resource, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"})
	check(value(mapper.ResourceFor(schema.GroupVersionResource{Resource: "cm"})).Resource, "configmaps")
	document := value(w.client.Discovery().OpenAPISchema())
	check(document.GetInfo().GetTitle(), "Kubernetes")
	check(len(value(w.client.Discovery().OpenAPIV3().Paths())) > 10, true)
}

func workloads(w world) {
	sets := w.client.AppsV1().Deployments(space)
	value(sets.Create(w.ctx, website("web", 2), meta.CreateOptions{}))
	until(w.ctx, "a Deployment that is ready", func() bool {
		return value(sets.Get(w.ctx, "web", meta.GetOptions{})).Status.ReadyReplicas == 2
	})
	pods := w.client.CoreV1().Pods(space)
	pod := value(pods.List(w.ctx, meta.ListOptions{LabelSelector: "app=web"})).Items[0].Name
	logs := value(pods.GetLogs(pod, &core.PodLogOptions{}).DoRaw(w.ctx))
	check(string(logs), "one\ntwo\n")
	last := int64(1)
	check(string(value(pods.GetLogs(pod, &core.PodLogOptions{TailLines: &last}).DoRaw(w.ctx))), "two\n")
	check(execute(w, pod, []string{"echo", "a b"}, nil), "echo a b\n")
	check(execute(w, pod, []string{"cat"}, strings.NewReader("input\n")), "cat\ninput\n")
}

// execute runs a command in a Pod over WebSocket, and returns its output.
func execute(w world, pod string, command []string, input io.Reader) string {
	request := w.client.CoreV1().RESTClient().Get().Resource("pods").Namespace(space).Name(pod).SubResource("exec").
		VersionedParams(&core.PodExecOptions{
			Container: "c", Command: command, Stdin: input != nil, Stdout: true, Stderr: true,
		}, scheme.ParameterCodec)
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	executor := value(remotecommand.NewWebSocketExecutor(w.config, "GET", request.URL().String()))
	var output, errors bytes.Buffer
	must(executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: input, Stdout: &output, Stderr: &errors}))
	check(errors.String(), "")
	return output.String()
}

func budgets(w world) {
	sets, pods := w.client.AppsV1().Deployments(space), w.client.CoreV1().Pods(space)
	resolver := scale.NewDiscoveryScaleKindResolver(w.client.Discovery())
	cached := memory.NewMemCacheClient(w.client.Discovery())
	config := rest.CopyConfig(w.config)
	config.ContentType = "application/json"
	client := value(scale.NewForConfig(config, restmapper.NewDeferredDiscoveryRESTMapper(cached), dynamic.LegacyAPIPathResolverFunc, resolver))
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	current := value(client.Scales(space).Get(w.ctx, deployments, "web", meta.GetOptions{}))
	check(current.Spec.Replicas, 2)
	current.Spec.Replicas = 3
	value(client.Scales(space).Update(w.ctx, deployments, current, meta.UpdateOptions{}))
	until(w.ctx, "three replicas", func() bool {
		return value(sets.Get(w.ctx, "web", meta.GetOptions{})).Status.ReadyReplicas == 3
	})
	all := intstr.FromInt32(3)
	budget := &policy.PodDisruptionBudget{
		ObjectMeta: meta.ObjectMeta{Name: "web"},
		Spec:       policy.PodDisruptionBudgetSpec{MinAvailable: &all, Selector: &meta.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
	value(w.client.PolicyV1().PodDisruptionBudgets(space).Create(w.ctx, budget, meta.CreateOptions{}))
	until(w.ctx, "the budget's status", func() bool {
		return value(w.client.PolicyV1().PodDisruptionBudgets(space).Get(w.ctx, "web", meta.GetOptions{})).Status.CurrentHealthy == 3
	})
	pod := value(pods.List(w.ctx, meta.ListOptions{LabelSelector: "app=web"})).Items[0].Name
	evict := func() error {
		return w.client.PolicyV1().Evictions(space).Evict(w.ctx, &policy.Eviction{ObjectMeta: meta.ObjectMeta{Name: pod, Namespace: space}})
	}
	refused(429, meta.StatusReasonTooManyRequests, evict())
	must(w.client.PolicyV1().PodDisruptionBudgets(space).Delete(w.ctx, "web", meta.DeleteOptions{}))
	must(evict())
	until(w.ctx, "an evicted Pod", func() bool {
		list := value(pods.List(w.ctx, meta.ListOptions{LabelSelector: "app=web"}))
		for _, one := range list.Items {
			if one.Name == pod && one.DeletionTimestamp == nil {
				return false
			}
		}
		return true
	})
}

func rights(w world) {
	account := &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: "robot"}}
	value(w.client.CoreV1().ServiceAccounts(space).Create(w.ctx, account, meta.CreateOptions{}))
	role := &rbac.Role{
		ObjectMeta: meta.ObjectMeta{Name: "reads"},
		Rules:      []rbac.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
	}
	value(w.client.RbacV1().Roles(space).Create(w.ctx, role, meta.CreateOptions{}))
	binding := &rbac.RoleBinding{
		ObjectMeta: meta.ObjectMeta{Name: "reads"},
		RoleRef:    rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "Role", Name: "reads"},
		Subjects:   []rbac.Subject{{Kind: "ServiceAccount", Name: "robot", Namespace: space}},
	}
	value(w.client.RbacV1().RoleBindings(space).Create(w.ctx, binding, meta.CreateOptions{}))
	request := value(w.client.CoreV1().ServiceAccounts(space).CreateToken(w.ctx, "robot", &authentication.TokenRequest{}, meta.CreateOptions{}))
	config := rest.AnonymousClientConfig(w.config)
	config.BearerToken = request.Status.Token
	robot := kubernetes.NewForConfigOrDie(config)
	value(robot.CoreV1().ConfigMaps(space).List(w.ctx, meta.ListOptions{}))
	_, err := robot.CoreV1().Secrets(space).List(w.ctx, meta.ListOptions{})
	refused(403, meta.StatusReasonForbidden, err)
	_, err = robot.CoreV1().ConfigMaps(space).Patch(w.ctx, "x", types.MergePatchType, []byte(`{}`), meta.PatchOptions{})
	refused(403, meta.StatusReasonForbidden, err)
	allowed := func(verb, resource string) bool {
		review := &authorization.SelfSubjectAccessReview{Spec: authorization.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorization.ResourceAttributes{Namespace: space, Verb: verb, Resource: resource},
		}}
		return value(robot.AuthorizationV1().SelfSubjectAccessReviews().Create(w.ctx, review, meta.CreateOptions{})).Status.Allowed
	}
	check(allowed("list", "configmaps"), true)
	check(allowed("create", "configmaps"), false)
	tokens := &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: request.Status.Token}}
	reviewed := value(w.client.AuthenticationV1().TokenReviews().Create(w.ctx, tokens, meta.CreateOptions{}))
	check(reviewed.Status.User.Username, "system:serviceaccount:"+space+":robot")
	config = rest.CopyConfig(w.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + space + ":robot"}
	_, err = kubernetes.NewForConfigOrDie(config).CoreV1().Secrets(space).List(w.ctx, meta.ListOptions{})
	refused(403, meta.StatusReasonForbidden, err)
	config = rest.AnonymousClientConfig(w.config)
	config.BearerToken = "nonsense"
	_, err = kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(space).List(w.ctx, meta.ListOptions{})
	refused(401, meta.StatusReasonUnauthorized, err)
}
