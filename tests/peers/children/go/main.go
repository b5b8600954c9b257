// An object with five children in controller-runtime, by hand-written CreateOrUpdate, for ../run.
//
// children-go KUBECONFIG N ROUNDS [bare]: as the program of ../src/main.rs, line for line of the protocol.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap/zapcore"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

type SiteSpec struct {
	Host     string `json:"host"`
	Replicas int32  `json:"replicas"`
}

type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              SiteSpec `json:"spec"`
}

type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}

// As controller-gen writes them.
func (in *Site) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func (in *SiteList) DeepCopyObject() runtime.Object {
	out := *in
	out.Items = make([]Site, len(in.Items))
	for at := range in.Items {
		out.Items[at] = *in.Items[at].DeepCopyObject().(*Site)
	}
	return &out
}

type sites struct {
	client     client.Client
	scheme     *runtime.Scheme
	reconciles atomic.Int64
	bare       bool
}

func (s *sites) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s.reconciles.Add(1)
	site := &Site{}
	if err := s.client.Get(ctx, request.NamespacedName, site); err != nil || s.bare {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	meta := metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}
	labels := map[string]string{"app": site.Name}

	config := &corev1.ConfigMap{ObjectMeta: meta}
	login := &corev1.Secret{ObjectMeta: meta}
	account := &corev1.ServiceAccount{ObjectMeta: meta}
	app := &appsv1.Deployment{ObjectMeta: meta}
	service := &corev1.Service{ObjectMeta: meta}
	children := []struct {
		object client.Object
		mutate func()
	}{
		{config, func() {
			config.Data = map[string]string{"host": site.Spec.Host, "index.html": "<h1>Welcome</h1>"}
		}},
		{login, func() {
			login.Type = corev1.SecretTypeOpaque
			login.Data = map[string][]byte{"user": []byte(site.Spec.Host)}
		}},
		{account, func() {}},
		// Field by field: defaults of the API server stay as they are, or each reconcile would write.
		{app, func() {
			app.Spec.Replicas = &site.Spec.Replicas
			app.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
			app.Spec.Template.Labels = labels
			pod := &app.Spec.Template.Spec
			pod.ServiceAccountName = site.Name
			if len(pod.Containers) != 1 {
				pod.Containers = make([]corev1.Container, 1)
			}
			container := &pod.Containers[0]
			container.Name, container.Image = "nginx", "nginx:1.29"
			container.Env = []corev1.EnvVar{{Name: "HOST", Value: site.Spec.Host}}
			if len(container.Ports) != 1 {
				container.Ports = make([]corev1.ContainerPort, 1)
			}
			container.Ports[0].ContainerPort = 80
		}},
		{service, func() {
			service.Spec.Selector = labels
			if len(service.Spec.Ports) != 1 {
				service.Spec.Ports = []corev1.ServicePort{{TargetPort: intstr.FromInt32(80)}}
			}
			service.Spec.Ports[0].Port = 80
		}},
	}
	for _, child := range children {
		_, err := controllerutil.CreateOrUpdate(ctx, s.client, child.object, func() error {
			child.mutate()
			return controllerutil.SetControllerReference(site, child.object, s.scheme)
		})
		if err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

// cpu is the CPU time of the process in nanoseconds.
func cpu() int64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "children-go:", err)
		os.Exit(1)
	}
}

// rest waits until no reconcile has begun for `quiet`.
func (s *sites) rest(least int64, quiet time.Duration) {
	for before := int64(-1); ; time.Sleep(quiet) {
		now := s.reconciles.Load()
		if now == before && now >= least {
			return
		}
		before = now
	}
}

func main() {
	log.SetLogger(zap.New(zap.Level(zapcore.ErrorLevel)))
	count, err := strconv.ParseInt(os.Args[2], 10, 64)
	check(err)
	rounds, err := strconv.ParseInt(os.Args[3], 10, 64)
	check(err)
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	check(err)
	scheme := runtime.NewScheme()
	check(clientgoscheme.AddToScheme(scheme))
	group := schema.GroupVersion{Group: "peers.example", Version: "v1"}
	scheme.AddKnownTypes(group, &Site{}, &SiteList{})
	metav1.AddToGroupVersion(scheme, group)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	check(err)
	s := &sites{client: manager.GetClient(), scheme: scheme, bare: len(os.Args) > 4 && os.Args[4] == "bare"}
	events := make(chan event.GenericEvent, 1024)
	check(ctrl.NewControllerManagedBy(manager).Named("sites").For(&Site{}).
		Owns(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Owns(&corev1.ServiceAccount{}).
		Owns(&appsv1.Deployment{}).Owns(&corev1.Service{}).
		WatchesRawSource(source.Channel(events, &handler.EnqueueRequestForObject{})).
		Complete(s))
	ctx := ctrl.SetupSignalHandler()
	go func() { check(manager.Start(ctx)) }()
	s.rest(count, 2*time.Second)
	fmt.Println("settled")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		began, before := cpu(), s.reconciles.Load()
		for round := int64(1); round <= rounds; round++ {
			for at := range count {
				object := &Site{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("site-%d", at)}}
				events <- event.GenericEvent{Object: object}
			}
			for s.reconciles.Load() < before+round*count {
				time.Sleep(time.Millisecond)
			}
		}
		fmt.Println(cpu()-began, s.reconciles.Load()-before)
	}
}
