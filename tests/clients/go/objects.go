package main

import (
	"context"
	"fmt"
	"sync"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"
)

func objects(w world) {
	maps := w.client.CoreV1().ConfigMaps(space)
	made := value(maps.Create(w.ctx, configMap("crud", nil, map[string]string{"a": "1"}), meta.CreateOptions{}))
	_, err := maps.Create(w.ctx, configMap("crud", nil, nil), meta.CreateOptions{})
	refused(409, meta.StatusReasonAlreadyExists, err)
	read := value(maps.Get(w.ctx, "crud", meta.GetOptions{}))
	check(read.UID, made.UID)
	check(read.CreationTimestamp.Time.Equal(made.CreationTimestamp.Time), true)
	read.Data["a"], read.BinaryData = "2", map[string][]byte{"b": {0, 1, 255}}
	written := value(maps.Update(w.ctx, read, meta.UpdateOptions{}))
	check(written.Data, map[string]string{"a": "2"})
	check(written.BinaryData, map[string][]byte{"b": {0, 1, 255}})
	_, err = maps.Update(w.ctx, read, meta.UpdateOptions{})
	refused(409, meta.StatusReasonConflict, err)
	trial := value(maps.Create(w.ctx, configMap("trial", nil, nil), meta.CreateOptions{DryRun: []string{meta.DryRunAll}}))
	check(trial.UID != "", true)
	_, err = maps.Get(w.ctx, "trial", meta.GetOptions{})
	refused(404, meta.StatusReasonNotFound, err)
	other := types.UID("another")
	err = maps.Delete(w.ctx, "crud", meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &other}})
	refused(409, meta.StatusReasonConflict, err)
	must(maps.Delete(w.ctx, "crud", meta.DeleteOptions{}))
	_, err = maps.Create(w.ctx, configMap("A B", nil, nil), meta.CreateOptions{})
	refused(422, meta.StatusReasonInvalid, err)
}

func patches(w world) {
	maps := w.client.CoreV1().ConfigMaps(space)
	value(maps.Create(w.ctx, configMap("patched", nil, map[string]string{"a": "1", "b": "1"}), meta.CreateOptions{}))
	patched := func(kind types.PatchType, body string) map[string]string {
		return value(maps.Patch(w.ctx, "patched", kind, []byte(body), meta.PatchOptions{})).Data
	}
	check(patched(types.MergePatchType, `{"data":{"a":null,"c":"3"}}`), map[string]string{"b": "1", "c": "3"})
	check(patched(types.JSONPatchType, `[{"op":"replace","path":"/data/c","value":"4"}]`),
		map[string]string{"b": "1", "c": "4"})
	check(patched(types.StrategicMergePatchType, `{"data":{"d":"5"}}`),
		map[string]string{"b": "1", "c": "4", "d": "5"})
	intent := applycore.ConfigMap("patched", space).WithData(map[string]string{"e": "6"})
	applied := value(maps.Apply(w.ctx, intent, meta.ApplyOptions{FieldManager: manager}))
	check(applied.Data["e"], "6")
	intent = applycore.ConfigMap("patched", space).WithData(map[string]string{"e": "7"})
	_, err := maps.Apply(w.ctx, intent, meta.ApplyOptions{FieldManager: "another"})
	refused(409, meta.StatusReasonConflict, err)
	// An extracted configuration holds the fields of its manager alone.
	mine := value(applycore.ExtractConfigMap(applied, manager))
	check(mine.Data, map[string]string{"e": "6"})
	applied = value(maps.Apply(w.ctx, applycore.ConfigMap("patched", space), meta.ApplyOptions{FieldManager: manager}))
	check(applied.Data, map[string]string{"b": "1", "c": "4", "d": "5"})
}

func lists(w world) {
	maps := w.client.CoreV1().ConfigMaps(space)
	for number := range 5 {
		labels := map[string]string{"half": fmt.Sprint(number % 2), "paged": "yes"}
		value(maps.Create(w.ctx, configMap(fmt.Sprintf("page-%d", number), labels, nil), meta.CreateOptions{}))
	}
	names := func(options meta.ListOptions) (names []string) {
		pages := pager.New(func(ctx context.Context, options meta.ListOptions) (runtime.Object, error) {
			return maps.List(ctx, options)
		})
		pages.PageSize = 2
		must(pages.EachListItem(w.ctx, options, func(item runtime.Object) error {
			names = append(names, item.(*core.ConfigMap).Name)
			return nil
		}))
		return names
	}
	check(names(meta.ListOptions{LabelSelector: "paged"}), []string{"page-0", "page-1", "page-2", "page-3", "page-4"})
	check(names(meta.ListOptions{LabelSelector: "half=1,paged in (yes,no)"}), []string{"page-1", "page-3"})
	check(names(meta.ListOptions{FieldSelector: "metadata.name=page-2"}), []string{"page-2"})
	must(maps.DeleteCollection(w.ctx, meta.DeleteOptions{}, meta.ListOptions{LabelSelector: "paged"}))
	check(len(names(meta.ListOptions{LabelSelector: "paged"})), 0)
}

func conflicts(w world) {
	maps := w.client.CoreV1().ConfigMaps(space)
	value(maps.Create(w.ctx, configMap("counted", nil, nil), meta.CreateOptions{}))
	const writers = 8
	var group sync.WaitGroup
	results := make([]error, writers)
	for number := range writers {
		group.Go(func() {
			backoff := retry.DefaultBackoff
			backoff.Steps = 100
			results[number] = retry.RetryOnConflict(backoff, func() error {
				object, err := maps.Get(w.ctx, "counted", meta.GetOptions{})
				if err != nil {
					return err
				}
				if object.Data == nil {
					object.Data = map[string]string{}
				}
				object.Data[fmt.Sprint(len(object.Data))] = fmt.Sprint(number)
				_, err = maps.Update(w.ctx, object, meta.UpdateOptions{})
				return err
			})
		})
	}
	group.Wait()
	for _, err := range results {
		must(err)
	}
	check(len(value(maps.Get(w.ctx, "counted", meta.GetOptions{})).Data), writers)
}

func watches(w world) {
	maps := w.client.CoreV1().ConfigMaps(space)
	begin := value(maps.List(w.ctx, meta.ListOptions{})).ResourceVersion
	labels := map[string]string{"w": "1"}
	value(maps.Create(w.ctx, configMap("watched", labels, map[string]string{"a": "1"}), meta.CreateOptions{}))
	value(maps.Patch(w.ctx, "watched", types.MergePatchType, []byte(`{"data":{"a":"2"}}`), meta.PatchOptions{}))
	must(maps.Delete(w.ctx, "watched", meta.DeleteOptions{}))
	source := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options meta.ListOptions) (watch.Interface, error) {
		options.LabelSelector = "w=1"
		return maps.Watch(ctx, options)
	}}
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	var seen []string
	_, err := watchtools.Until(ctx, begin, source, func(event watch.Event) (bool, error) {
		seen = append(seen, fmt.Sprintf("%s %s", event.Type, event.Object.(*core.ConfigMap).Data["a"]))
		return event.Type == watch.Deleted, nil
	})
	must(err)
	check(seen, []string{"ADDED 1", "MODIFIED 2", "DELETED 2"})
	seconds := int64(1)
	short := value(maps.Watch(w.ctx, meta.ListOptions{LabelSelector: "nobody", TimeoutSeconds: &seconds}))
	for event := range short.ResultChan() {
		fail("%v from a watch of nothing", event)
	}
	future := value(maps.Watch(w.ctx, meta.ListOptions{ResourceVersion: "1"}))
	defer future.Stop()
	event := <-future.ResultChan()
	if event.Type == watch.Error {
		check(event.Object.(*meta.Status).Code, 410)
	}
}

// website returns a Deployment whose Pods write a log.
func website(name string, replicas int32) *apps.Deployment {
	labels := map[string]string{"app": name}
	return &apps.Deployment{
		ObjectMeta: meta.ObjectMeta{Name: name},
		Spec: apps.DeploymentSpec{
			Replicas: &replicas,
			Selector: &meta.LabelSelector{MatchLabels: labels},
			Template: core.PodTemplateSpec{
				ObjectMeta: meta.ObjectMeta{
					Labels: labels, Annotations: map[string]string{"windlass.dev/log": "one\ntwo\n"},
				},
				Spec: core.PodSpec{Containers: []core.Container{{Name: "c", Image: "i"}}},
			},
		},
	}
}
