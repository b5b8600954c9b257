package main

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// config leaves the rate limit of requests out: there are hardly any.
func config(o options) *rest.Config {
	config := &rest.Config{Host: o.server}
	if o.mode == "json" {
		config.ContentType = "application/json"
	}
	return config
}

// base is the common part of both subjects: an indexer.
type base struct {
	m       meter
	indexer cache.Indexer
	synced  func() bool
}

func (b *base) meter() *meter { return &b.m }

func (b *base) isSynced() bool { return b.synced() }

func (b *base) version(namespace, name string) string {
	object, ok, _ := b.indexer.GetByKey(namespace + "/" + name)
	if !ok {
		return ""
	}
	return object.(metav1.Object).GetResourceVersion()
}

func (b *base) visit(visit func(namespace, name, version string)) {
	for _, item := range b.indexer.List() {
		object := item.(metav1.Object)
		visit(object.GetNamespace(), object.GetName(), object.GetResourceVersion())
	}
}

func (b *base) lookup(app string) int {
	objects, _ := b.indexer.ByIndex("app", app)
	return len(objects)
}

func byApp(item any) ([]string, error) {
	return []string{item.(metav1.Object).GetLabels()["app"]}, nil
}

func byOther(item any) ([]string, error) {
	switch object := item.(type) {
	case *corev1.Pod:
		return []string{object.Spec.NodeName}, nil
	case *Widget:
		return []string{object.Spec.Host}, nil
	}
	return nil, nil
}

// informer is client-go alone: a shared informer with two indexes.
type informer struct {
	base
	shared cache.SharedIndexInformer
}

func newInformer(o options) subject {
	var lister cache.ListerWatcher
	var example runtime.Object
	if o.kind == "pod" {
		// Generated clients ask for protobuf themselves unless a content type is set.
		set, err := kubernetes.NewForConfig(config(o))
		check(err)
		pods := set.CoreV1().Pods("")
		example = &corev1.Pod{}
		lister = cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return pods.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watchInterface, error) {
				return pods.Watch(ctx, options)
			},
		}, set)
	} else {
		scheme := runtime.NewScheme()
		check(addWidgets(scheme))
		typed := config(o)
		typed.GroupVersion = &widgetVersion
		typed.APIPath = "/apis"
		typed.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
		widgets, err := rest.RESTClientFor(typed)
		check(err)
		example = &Widget{}
		lister = cache.NewListWatchFromClient(widgets, "widgets", "", everything)
	}
	shared := cache.NewSharedIndexInformer(lister, example, 0, cache.Indexers{"app": byApp, "other": byOther})
	if transform := cached(o).DefaultTransform; transform != nil {
		check(shared.SetTransform(transform))
	}
	return &informer{base: base{indexer: shared.GetIndexer(), synced: shared.HasSynced}, shared: shared}
}

func (i *informer) start() error {
	go i.shared.Run(make(chan struct{}))
	return nil
}

// manager is controller-runtime with a reconciler that gets the object and does nothing.
type manager struct {
	base
	options options
}

func newManager(o options) subject { return &manager{options: o} }

func (m *manager) start() error {
	log.SetLogger(zap.New(zap.UseDevMode(false), zap.Level(logLevel(m.options))))
	scheme := runtime.NewScheme()
	check(clientgoscheme.AddToScheme(scheme))
	check(addWidgets(scheme))
	var example client.Object = &corev1.Pod{}
	if m.options.kind == "widget" {
		example = &Widget{}
	}
	ctx := context.Background()
	manager, err := ctrl.NewManager(config(m.options), ctrl.Options{
		Scheme:                 scheme,
		Cache:                  cached(m.options),
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	})
	if err != nil {
		return err
	}
	for name, index := range map[string]cache.IndexFunc{"app": byApp, "other": byOther} {
		values := func(object client.Object) []string {
			values, _ := index(object)
			return values
		}
		if err := manager.GetFieldIndexer().IndexField(ctx, example, name, values); err != nil {
			return err
		}
	}
	build := ctrl.NewControllerManagedBy(manager).For(example)
	switch {
	case m.options.workers > 0:
		build = build.WithOptions(controllerOptions(m.options.workers))
	case has(m.options, "flight:"):
		build = build.WithOptions(controllerOptions(20_000))
	}
	if err := build.Complete(&noop{m: &m.m, client: manager.GetClient(), kind: m.options.kind}); err != nil {
		return err
	}
	shared, err := manager.GetCache().GetInformer(ctx, example, nonblocking)
	if err != nil {
		return err
	}
	indexed := shared.(cache.SharedIndexInformer)
	m.indexer, m.synced = indexed.GetIndexer(), indexed.HasSynced
	go func() { check(manager.Start(ctx)) }()
	return nil
}

// lookup reads controller-runtime's own field index.
func (m *manager) lookup(app string) int {
	objects, _ := m.indexer.ByIndex("field:app", "__all_namespaces/"+app)
	return len(objects)
}

// errRefused is the error of a reconcile that has to fail.
var errRefused = errors.New("refused")

type noop struct {
	m      *meter
	client client.Client
	kind   string
}

func (n *noop) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var object client.Object = &corev1.Pod{}
	if n.kind == "widget" {
		object = &Widget{}
	}
	if err := n.client.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	n.m.saw(object.GetResourceVersion(), object.GetAnnotations())
	if n.m.fails(object.GetResourceVersion()) {
		return ctrl.Result{}, errRefused
	}
	return ctrl.Result{}, nil
}
