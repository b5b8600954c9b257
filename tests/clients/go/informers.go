package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

// log collects lines of several goroutines.
type log struct {
	sync.Mutex
	lines []string
}

func (l *log) add(format string, values ...any) {
	l.Lock()
	defer l.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, values...))
}

func (l *log) has(line string) bool {
	l.Lock()
	defer l.Unlock()
	return slices.Contains(l.lines, line)
}

// synced fails unless each informer has its first list in time.
func synced(ctx context.Context, informers ...cache.SharedIndexInformer) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, informer := range informers {
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			fail("an informer has no first list after %v", limit)
		}
	}
}

func followed(w world) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	maps := w.client.CoreV1().ConfigMaps(space)
	marked := map[string]string{"informed": "yes"}
	value(maps.Create(w.ctx, configMap("early", marked, map[string]string{"a": "1"}), meta.CreateOptions{}))
	factory := informers.NewSharedInformerFactoryWithOptions(w.client, 0, informers.WithNamespace(space))
	informer, accounts := factory.Core().V1().ConfigMaps(), factory.Core().V1().ServiceAccounts()
	sets := factory.Apps().V1().Deployments()
	must(informer.Informer().AddIndexers(cache.Indexers{"a": func(object any) ([]string, error) {
		return []string{object.(*core.ConfigMap).Data["a"]}, nil
	}}))
	var seen log
	value(informer.Informer().AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, first bool) { seen.add("add %s %v", object.(*core.ConfigMap).Name, first) },
		UpdateFunc: func(old, object any) {
			seen.add("update %s %s %s", object.(*core.ConfigMap).Name, old.(*core.ConfigMap).Data["a"], object.(*core.ConfigMap).Data["a"])
		},
		DeleteFunc: func(object any) { seen.add("delete %s", object.(*core.ConfigMap).Name) },
	}))
	all := []cache.SharedIndexInformer{informer.Informer(), accounts.Informer(), sets.Informer()}
	factory.StartWithContext(ctx)
	synced(ctx, all...)
	value(maps.Create(w.ctx, configMap("late", marked, map[string]string{"a": "1"}), meta.CreateOptions{}))
	value(maps.Patch(w.ctx, "late", types.MergePatchType, []byte(`{"data":{"a":"2"}}`), meta.PatchOptions{}))
	must(maps.Delete(w.ctx, "early", meta.DeleteOptions{}))
	for _, line := range []string{"add early true", "add late false", "update late 1 2", "delete early"} {
		until(ctx, line, func() bool { return seen.has(line) })
	}
	listed := value(informer.Lister().ConfigMaps(space).List(labels.SelectorFromSet(marked)))
	check(len(listed), 1)
	indexed := value(informer.Informer().GetIndexer().ByIndex("a", "2"))
	until(ctx, "the index", func() bool {
		return slices.ContainsFunc(indexed, func(one any) bool { return one.(*core.ConfigMap).Name == "late" })
	})
	value(w.client.AppsV1().Deployments(space).Create(w.ctx, website("informed", 1), meta.CreateOptions{}))
	until(ctx, "a Deployment that is ready in the cache", func() bool {
		one, err := sets.Lister().Deployments(space).Get("informed")
		return err == nil && one.Status.ReadyReplicas == 1
	})
	must(w.client.AppsV1().Deployments(space).Delete(w.ctx, "informed", meta.DeleteOptions{}))
	cancel()
	factory.Shutdown()
}

func otherInformers(w world) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	config := rest.CopyConfig(w.config)
	config.ContentType = "application/json"
	client := dynamic.NewForConfigOrDie(config)
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	note := func(kind, name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
		}}
	}
	definition := note("CustomResourceDefinition", "notes."+group, map[string]any{
		"group": group, "scope": "Namespaced",
		"names": map[string]any{"plural": "notes", "singular": "note", "kind": "Note", "listKind": "NoteList"},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
				"spec": map[string]any{"type": "object", "properties": map[string]any{
					"text":     map[string]any{"type": "string"},
					"replicas": map[string]any{"type": "integer", "default": int64(2)},
				}},
				"status": map[string]any{"type": "object", "properties": map[string]any{"ready": map[string]any{"type": "boolean"}}},
			}}},
		}},
	})
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	value(client.Resource(definitions).Create(ctx, definition, meta.CreateOptions{}))
	notes := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "notes"}
	until(ctx, "the definition's kind is served", func() bool {
		_, err := client.Resource(notes).Namespace(space).List(ctx, meta.ListOptions{})
		return err == nil
	})
	custom := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, space, nil).ForResource(notes)
	partial := metadatainformer.NewFilteredSharedInformerFactory(
		metadata.NewForConfigOrDie(w.config), 0, space, nil).ForResource(notes)
	go custom.Informer().RunWithContext(ctx)
	go partial.Informer().RunWithContext(ctx)
	synced(ctx, custom.Informer(), partial.Informer())
	made := value(client.Resource(notes).Namespace(space).Create(ctx, note("Note", "n", map[string]any{"text": "x"}), meta.CreateOptions{}))
	check(made.Object["spec"].(map[string]any)["replicas"].(int64), 2)
	made.Object["status"] = map[string]any{"ready": true}
	value(client.Resource(notes).Namespace(space).UpdateStatus(ctx, made, meta.UpdateOptions{}))
	until(ctx, "the status in the cache", func() bool {
		found, err := custom.Lister().ByNamespace(space).Get("n")
		if err != nil {
			return false
		}
		ready, _, _ := unstructured.NestedBool(found.(*unstructured.Unstructured).Object, "status", "ready")
		return ready
	})
	until(ctx, "the metadata in the cache", func() bool {
		found, err := partial.Lister().ByNamespace(space).Get("n")
		return err == nil && found.(*meta.PartialObjectMetadata).UID == made.GetUID()
	})
	_, err := client.Resource(notes).Namespace(space).Create(ctx, note("Note", "wrong", map[string]any{"text": int64(5)}), meta.CreateOptions{})
	refused(422, meta.StatusReasonInvalid, err)
}

// candidate runs an elector until its context ends, and logs when it leads and stops.
func candidate(w world, ctx context.Context, name, identity string, seen *log) <-chan struct{} {
	lock := value(resourcelock.New(resourcelock.LeasesResourceLock, space, name,
		w.client.CoreV1(), w.client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity}))
	elector := value(leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: time.Second,
		ReleaseOnCancel: true, Name: name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { seen.add("%s leads", identity) },
			OnStoppedLeading: func() { seen.add("%s stopped", identity) },
			OnNewLeader:      func(leader string) { seen.add("%s sees %s", identity, leader) },
		},
	}))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(ctx)
	}()
	return ended
}

// renewed returns just after a renewal, so that none is in flight in the next second: client-go does not release a Lease if
// its context ends during a renewal that the server has carried out.
func renewed(w world, name string) {
	renewal := func() *meta.MicroTime {
		return value(w.client.CoordinationV1().Leases(space).Get(w.ctx, name, meta.GetOptions{})).Spec.RenewTime
	}
	last := renewal()
	until(w.ctx, "a renewal of "+name, func() bool { return !renewal().Equal(last) })
}

func elections(w world) {
	var seen log
	first, release := context.WithCancel(w.ctx)
	ended := candidate(w, first, "election", "a", &seen)
	until(w.ctx, "a leads", func() bool { return seen.has("a leads") })
	second, stop := context.WithCancel(w.ctx)
	other := candidate(w, second, "election", "b", &seen)
	until(w.ctx, "b sees a", func() bool { return seen.has("b sees a") })
	check(seen.has("b leads"), false)
	renewed(w, "election")
	release()
	<-ended
	until(w.ctx, "b leads", func() bool { return seen.has("b leads") })
	lease := value(w.client.CoordinationV1().Leases(space).Get(w.ctx, "election", meta.GetOptions{}))
	check(*lease.Spec.HolderIdentity, "b")
	// A release leaves the number as it is, and who takes a released Lease counts.
	check(*lease.Spec.LeaseTransitions >= 1, true)
	renewed(w, "election")
	stop()
	<-other
	lease = value(w.client.CoordinationV1().Leases(space).Get(w.ctx, "election", meta.GetOptions{}))
	check(*lease.Spec.HolderIdentity, "")
}

func deletedLease(w world) {
	var seen log
	ctx, stop := context.WithCancel(w.ctx)
	ended := candidate(w, ctx, "deleted", "a", &seen)
	until(w.ctx, "a leads", func() bool { return seen.has("a leads") })
	leases := w.client.CoordinationV1().Leases(space)
	old := value(leases.Get(w.ctx, "deleted", meta.GetOptions{}))
	must(leases.Delete(w.ctx, "deleted", meta.DeleteOptions{}))
	until(w.ctx, "another Lease", func() bool {
		lease, err := leases.Get(w.ctx, "deleted", meta.GetOptions{})
		return err == nil && lease.UID != old.UID && *lease.Spec.HolderIdentity == "a"
	})
	check(seen.has("a stopped"), false)
	stop()
	<-ended
}

func counted(w world) {
	object := value(w.client.CoreV1().ConfigMaps(space).Create(w.ctx, configMap("noted", nil, nil), meta.CreateOptions{}))
	object.APIVersion, object.Kind = "v1", "ConfigMap"
	classic := record.NewBroadcaster()
	defer classic.Shutdown()
	classic.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: w.client.CoreV1().Events(space)})
	recorder := classic.NewRecorder(scheme.Scheme, core.EventSource{Component: "go"})
	for range 3 {
		recorder.Event(object, core.EventTypeNormal, "Repeated", "the same text")
	}
	until(w.ctx, "one event with a count of three", func() bool {
		list := value(w.client.CoreV1().Events(space).List(w.ctx, meta.ListOptions{FieldSelector: "involvedObject.name=noted,reason=Repeated"}))
		return len(list.Items) == 1 && list.Items[0].Count == 3
	})
	current := events.NewBroadcaster(&events.EventSinkImpl{Interface: w.client.EventsV1()})
	must(current.StartRecordingToSinkWithContext(w.ctx))
	defer current.Shutdown()
	series := current.NewRecorder(scheme.Scheme, "go.example/controller")
	found := func(holds func(eventsv1.Event) bool) func() bool {
		return func() bool {
			list := value(w.client.EventsV1().Events(space).List(w.ctx, meta.ListOptions{FieldSelector: "reason=Series"}))
			return len(list.Items) == 1 && holds(list.Items[0])
		}
	}
	series.Eventf(object, nil, core.EventTypeWarning, "Series", "Trying", "attempt")
	until(w.ctx, "the first event of a series", found(func(one eventsv1.Event) bool { return one.Series == nil }))
	series.Eventf(object, nil, core.EventTypeWarning, "Series", "Trying", "attempt")
	until(w.ctx, "a series", found(func(one eventsv1.Event) bool { return one.Series != nil && one.Series.Count == 2 }))
}
