// The client of Go against the server of $KUBECONFIG: one function per case. Typed clients speak
// protobuf, as those of controllers do.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

const (
	space   = "go"
	group   = "go.example"
	limit   = 20 * time.Second
	binary  = "application/vnd.kubernetes.protobuf"
	manager = "go"
)

// world is what each case is given.
type world struct {
	ctx    context.Context
	config *rest.Config
	client *kubernetes.Clientset
}

// failure is an assertion that does not hold.
type failure struct{ error }

func fail(format string, values ...any) { panic(failure{fmt.Errorf(format, values...)}) }

// must fails the case with an error.
func must(err error) {
	if err != nil {
		fail("%w", err)
	}
}

// value returns the first of two results, or fails the case with the second.
func value[T any](one T, err error) T {
	must(err)
	return one
}

// check fails unless both values are equal.
func check[T any](got, want T) {
	if !reflect.DeepEqual(got, want) {
		fail("%v instead of %v", got, want)
	}
}

// refused fails unless an error has this code and reason.
func refused(code int32, reason meta.StatusReason, err error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		fail("%v is no refusal of the server", err)
	}
	check(status.Status().Code, code)
	check(status.Status().Reason, reason)
}

// until waits for a condition.
func until(ctx context.Context, subject string, holds func() bool) {
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, limit, true,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		fail("%s: not within %v", subject, limit)
	}
}

func configMap(name string, labels map[string]string, data map[string]string) *core.ConfigMap {
	return &core.ConfigMap{
		ObjectMeta: meta.ObjectMeta{Name: name, Namespace: space, Labels: labels},
		Data:       data,
	}
}

// play runs one case, and returns its failure.
func play(w world, run func(world)) (err error) {
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case failure:
			err = fmt.Errorf("%w\n%s", cause.error, debug.Stack())
		default:
			panic(cause)
		}
	}()
	run(w)
	return nil
}

func main() {
	klog.SetOutput(os.Stderr)
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	config.ContentType, config.QPS = binary, -1
	w := world{ctx: context.Background(), config: config, client: kubernetes.NewForConfigOrDie(config)}
	ns := &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: space}}
	if _, err := w.client.CoreV1().Namespaces().Create(w.ctx, ns, meta.CreateOptions{}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	cases := []struct {
		name string
		run  func(world)
	}{
		{"objects are created, read, replaced and deleted in protobuf", objects},
		{"patches of three kinds and apply configurations are read", patches},
		{"lists come in pages and by selectors", lists},
		{"conflicting updates are repeated until they hold", conflicts},
		{"a watch goes on from a version, and a version that is gone ends it", watches},
		{"informers follow the writes to several kinds", followed},
		{"an informer of metadata, and one of a custom resource, follow writes", otherInformers},
		{"a Lease has one holder, and changes hands when it is released", elections},
		{"a deleted Lease is created anew by its holder", deletedLease},
		{"repeated events are counted, in both groups", counted},
		{"kinds are found by discovery and a mapper", kinds},
		{"workloads run, and logs, exec and attach reach them", workloads},
		{"replicas are scaled, and Pods are evicted within a budget", budgets},
		{"rights, tokens, reviews and impersonation are those of a cluster", rights},
	}
	failed := 0
	for _, one := range cases {
		if err := play(w, one.run); err != nil {
			failed++
			fmt.Printf("failed: go: %s\n%v\n", one.name, err)
		}
	}
	fmt.Printf("go: %d passed, %d failed\n", len(cases)-failed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
