package main

import (
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	keys = 100_000
	// A controller's own source adds the keys of a read of the network; this is the most with ours.
	batch = 64
	// From the last add until the first delayed key falls due: memory is read meanwhile.
	lead = 2 * time.Second
	// The others wait so long and longer.
	far = time.Hour
)

func names(count uint64) []string {
	names := make([]string, count)
	for at := range names {
		names[at] = "team/" + itoa(at)
	}
	return names
}

// queue runs client-go's own work queue: a producer, a worker, 100k keys. The producer never runs so
// far ahead as to add a key which still waits. With a name the queue has metrics, as ours always has.
func (b *base) queue(name string, adds uint64) uint64 {
	names := names(keys)
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.DefaultTypedControllerRateLimiter[string](),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: name})
	runs, done := oneWorker(queue)
	for at := range adds {
		queue.Add(names[at%keys])
		if at%128 == 127 {
			keepNear(at, runs)
		}
	}
	queue.ShutDownWithDrain()
	<-done
	return runs.Load()
}

// ownQueue is the default queue of controller-runtime's controllers.
func (b *base) ownQueue(adds uint64) uint64 {
	requests := make([]reconcile.Request, keys)
	for at := range requests {
		requests[at].NamespacedName = types.NamespacedName{Namespace: "team", Name: itoa(at)}
	}
	queue := priorityqueue.New[reconcile.Request]("peers-own")
	runs, done := oneWorker(queue)
	for at := range adds {
		queue.Add(requests[at%keys])
		if at%batch == batch-1 {
			keepNear(at, runs)
		}
	}
	for runs.Load() < adds {
		time.Sleep(time.Millisecond)
	}
	queue.ShutDown()
	<-done
	return runs.Load()
}

// oneWorker has a worker take keys until the queue is shut down.
func oneWorker[T comparable](queue workqueue.TypedRateLimitingInterface[T]) (*atomic.Uint64, chan struct{}) {
	done, runs := make(chan struct{}), &atomic.Uint64{}
	go func() {
		defer close(done)
		for {
			key, shutdown := queue.Get()
			if shutdown {
				return
			}
			runs.Add(1)
			queue.Done(key)
		}
	}()
	return runs, done
}

func keepNear(added uint64, runs *atomic.Uint64) {
	for added > runs.Load()+keys/2 {
		time.Sleep(time.Millisecond)
	}
}

// delayed is the outcome of delayed keys.
type delayed struct {
	// Distance from the due time of each key that was handed out, in nanoseconds.
	late []uint64
	// Memory that the delayed keys took, without their text; nanoseconds of CPU for all adds.
	bytes, cpu uint64
	// Did the first key fall due before memory was read?
	tooLate bool
}

// delays puts so many keys into client-go's delaying queue; some fall due evenly over so many seconds,
// the others all over an hour that begins in an hour.
func (b *base) delays(count, due, seconds uint64) delayed {
	names := names(count)
	queue := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Name: "peers"})
	debug.FreeOSMemory()
	before, _ := resident()
	used := cpu()
	step := far / time.Duration(max(count-due, 1))
	for at := due; at < count; at++ {
		queue.AddAfter(names[at], far+step*time.Duration(at-due))
	}
	begun := time.Now()
	every := time.Duration(seconds) * time.Second / time.Duration(due)
	at := func(key uint64) time.Time { return begun.Add(lead + every*time.Duration(key)) }
	for key := range due {
		queue.AddAfter(names[key], time.Until(at(key)))
	}
	// Another goroutine takes them over meanwhile.
	time.Sleep(pause)
	seen := delayed{cpu: cpu() - used}
	now, _ := resident()
	seen.bytes = now - min(now, before)
	seen.tooLate = time.Now().After(at(0))
	done := make(chan struct{})
	seen.late = make([]uint64, 0, due)
	go func() {
		defer close(done)
		for {
			name, shutdown := queue.Get()
			if shutdown {
				return
			}
			late := time.Since(at(number(name[strings.IndexByte(name, '/')+1:])))
			seen.late = append(seen.late, uint64(late.Abs()))
			queue.Done(name)
		}
	}()
	time.Sleep(time.Until(at(due)) + pause)
	queue.ShutDown()
	<-done
	return seen
}
