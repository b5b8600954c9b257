package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"time"
)

func (w *work) sync() error {
	if err := w.mark(); err != nil {
		return err
	}
	w.begin()
	if err := w.s.start(); err != nil {
		return err
	}
	if err := until("the first list", w.s.isSynced); err != nil {
		return err
	}
	ready, readyCPU := time.Since(w.wall), cpu()-w.cpu
	if w.controller {
		if err := until("the first reconciles", func() bool { return w.m.reconciles.Load() >= w.objects }); err != nil {
			return err
		}
	}
	wall, used := time.Since(w.wall), cpu()-w.cpu
	first, span := w.m.reconciles.Load(), w.m.lastAt.Load()-w.m.firstAt.Load()
	time.Sleep(pause)
	now, peak := resident()
	w.steady = now
	if err := w.check("listed=%d", w.objects); err != nil {
		return err
	}
	l := w.line("sync", used, wall, w.objects)
	if w.controller && span > 0 {
		reconciles := w.m.reconciles.Load()
		if err := once("first reconciles", reconciles, w.objects); err != nil {
			return err
		}
		l["first_per_s"] = float64(first) * 1e9 / float64(span)
		l["reconciles_each"] = float64(reconciles) / float64(w.objects)
	}
	l["ready_s"], l["ready_cpu_us"] = ready.Seconds(), float64(readyCPU)/1e3/float64(w.objects)
	l["rss_kb_each"], l["peak_kb_each"] = w.each(now), w.each(peak)
	l["start_mb"] = float64(w.base) / 1e6
	l.print()
	return nil
}

// collect: memory after a collection that gives back free memory, which a program does not do unasked. At
// the end of a job, because the next job would begin with less memory.
func (w *work) collect() {
	// Objects in pools are freed by the second collection.
	debug.FreeOSMemory()
	debug.FreeOSMemory()
	now, _ := resident()
	line{"phase": "collect", "rss_kb_each": w.each(now)}.print()
}

type started struct {
	last            uint64
	namespace, name string
}

func (w *work) order(command string) (started, error) {
	fields, err := w.c.ask(command)
	if err != nil {
		return started{}, err
	}
	return started{number(fields["last"]), fields["namespace"], fields["name"]}, nil
}

func (w *work) has(s started) bool {
	version, _ := strconv.ParseUint(w.s.version(s.namespace, s.name), 10, 64)
	return version >= s.last
}

// follow waits until all that was started has arrived, opens the window meanwhile, and returns the CPU
// used until then and the time.
func (w *work) follow(s started, acknowledge bool) (uint64, time.Duration, error) {
	deadline := time.Now().Add(patience)
	acked, seen, since, used := uint64(0), w.m.reconciles.Load(), time.Now(), cpu()-w.cpu
	for time.Now().Before(deadline) {
		now := w.m.reconciles.Load()
		if now != seen {
			seen, since, used = now, time.Now(), cpu()-w.cpu
		}
		if acknowledge && now-w.counted > acked {
			acked = now - w.counted
			if _, err := fmt.Fprintf(w.c.connection, "ack %d\n", acked); err != nil {
				return 0, 0, err
			}
		}
		if w.controller {
			if w.m.newest.Load() >= s.last && time.Since(since) >= calm {
				return used, time.Duration(w.m.lastAt.Load() - w.began), nil
			}
		} else if w.has(s) {
			return cpu() - w.cpu, time.Since(w.wall), nil
		}
		time.Sleep(look)
	}
	return 0, 0, fmt.Errorf("version %d did not come", s.last)
}

func (w *work) events(count, window uint64) error {
	if !w.controller {
		// No acknowledgement would open the window.
		window = 0
	}
	if err := w.mark(); err != nil {
		return err
	}
	w.begin()
	s, err := w.order(fmt.Sprintf("events count=%d window=%d", count, window))
	if err != nil {
		return err
	}
	used, wall, err := w.follow(s, window > 0)
	if err != nil {
		return err
	}
	name := "events"
	if window > 0 {
		name = "paced"
		if err := once("paced reconciles", w.m.reconciles.Load()-w.counted, count); err != nil {
			return err
		}
	}
	if err := w.check("events=%d", count); err != nil {
		return err
	}
	l := w.line(name, used, wall, count)
	l["reconciles"] = w.m.reconciles.Load() - w.counted
	l["reconciles_per_s"] = float64(w.m.reconciles.Load()-w.counted) / wall.Seconds()
	l["reconciles_per_event"] = float64(w.m.reconciles.Load()-w.counted) / float64(count)
	l.print()
	return nil
}

func (w *work) churn(updates uint64) error {
	count := updates * w.objects
	if err := w.mark(); err != nil {
		return err
	}
	w.begin()
	s, err := w.order(fmt.Sprintf("events count=%d window=0", count))
	if err != nil {
		return err
	}
	used, wall, err := w.follow(s, false)
	if err != nil {
		return err
	}
	time.Sleep(pause)
	now, peak := resident()
	if err := w.check("events=%d", count); err != nil {
		return err
	}
	l := w.line("churn", used, wall, count)
	l["updates"], l["rss_kb_each"], l["peak_kb_each"] = updates, w.each(now), w.each(peak)
	l["growth"] = float64(now-min(now, w.base)) / float64(max(w.steady-min(w.steady, w.base), 1))
	w.steady = now
	l.print()
	return nil
}

func quantile(sorted []uint64, part float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[min(int(float64(len(sorted))*part), len(sorted)-1)]) / 1e3
}

func (w *work) rate(rate, seconds uint64) error {
	if err := w.mark(); err != nil {
		return err
	}
	w.m.lock.Lock()
	w.m.latencies = nil
	w.m.lock.Unlock()
	w.m.timing.Store(true)
	w.begin()
	s, err := w.order(fmt.Sprintf("events count=%d rate=%d", rate*seconds, rate))
	if err != nil {
		return err
	}
	used, wall, err := w.follow(s, false)
	if err != nil {
		return err
	}
	w.m.timing.Store(false)
	w.m.lock.Lock()
	latencies := w.m.latencies
	w.m.lock.Unlock()
	if err := w.check("events=%d", rate*seconds); err != nil {
		return err
	}
	if err := once("reconciles with a time stamp", uint64(len(latencies)), rate*seconds); err != nil {
		return err
	}
	slices.Sort(latencies)
	l := w.line("rate", used, wall, rate*seconds)
	l["rate"], l["samples"] = rate, len(latencies)
	l["reconciles_per_event"] = float64(w.m.reconciles.Load()-w.counted) / float64(rate*seconds)
	l["p50_us"], l["p99_us"] = quantile(latencies, 0.5), quantile(latencies, 0.99)
	l.print()
	return nil
}

func (w *work) relist(changed uint64) error {
	before, _ := resident()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	if err := w.mark(); err != nil {
		return err
	}
	w.begin()
	hidden, err := w.order(fmt.Sprintf("expire changed=%d", changed))
	if err != nil {
		return err
	}
	if _, err := w.c.ask("watched"); err != nil {
		return err
	}
	// A client that lists by a stream begins to watch before the end of the list is read: an event
	// behind the list marks that time.
	behind, err := w.order("events count=1 window=0")
	if err != nil {
		return err
	}
	used, wall, err := w.follow(behind, false)
	if err != nil {
		return err
	}
	if !w.has(hidden) {
		return fmt.Errorf("the list did not bring the changes: void")
	}
	if err := w.check("listed=%d expired=1 events=1", w.objects); err != nil {
		return err
	}
	_, peak := resident()
	time.Sleep(pause)
	after, _ := resident()
	steady := float64(max(before-min(before, w.base), 1))
	l := w.line("relist", used, wall, w.objects)
	l["peak_over_steady"] = float64(peak-min(peak, w.base)) / steady
	l["after_over_steady"] = float64(after-min(after, w.base)) / steady
	l["rss_kb_each"], l["peak_kb_each"] = w.each(after), w.each(peak)
	l.print()
	return nil
}

func (w *work) index(lookups, events uint64) error {
	apps := (w.objects + 19) / 20
	app := func(at uint64) string { return fmt.Sprintf("app-%d", at*7919%apps) }
	each, found := w.s.lookup(app(0)), 0
	var s started
	err := w.mark()
	if err != nil {
		return err
	}
	if events > 0 {
		if s, err = w.order(fmt.Sprintf("events count=%d window=0", events)); err != nil {
			return err
		}
	}
	w.begin()
	var taken []uint64
	for at := uint64(0); time.Since(w.wall) < patience; at++ {
		if events == 0 && (at >= lookups || at >= few && time.Since(w.wall) > long) || events > 0 && at%64 == 0 && w.has(s) {
			break
		}
		name := app(at)
		begun := nanos()
		found += w.s.lookup(name)
		taken = append(taken, nanos()-begun)
	}
	wall := time.Since(w.wall)
	if err := w.check("events=%d", events); err != nil {
		return err
	}
	if each != 20 || found != each*len(taken) {
		return fmt.Errorf("%d lookups found %d objects, the first %d of 20: void", len(taken), found, each)
	}
	slices.Sort(taken)
	name := "index"
	if events > 0 {
		name = "index_loaded"
	}
	line{"phase": name, "lookups": len(taken), "found_each": each, "found": found,
		"p50_us": quantile(taken, 0.5), "p99_us": quantile(taken, 0.99),
		"events_per_s": float64(events) / wall.Seconds()}.print()
	return nil
}

func (w *work) flight(milliseconds uint64) error {
	w.m.sleep.Store(int64(milliseconds) * 1e6)
	if err := w.mark(); err != nil {
		return err
	}
	w.begin()
	s, err := w.order(fmt.Sprintf("events count=%d window=0", w.objects))
	if err != nil {
		return err
	}
	_, wall, err := w.follow(s, true)
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(milliseconds)*time.Millisecond + calm)
	used := cpu() - w.cpu
	w.m.sleep.Store(0)
	if err := w.check("events=%d", w.objects); err != nil {
		return err
	}
	if err := once("sleeping reconciles", w.m.reconciles.Load()-w.counted, w.objects); err != nil {
		return err
	}
	l := w.line("flight", used, wall, w.objects)
	l["sleep_ms"] = milliseconds
	l.print()
	return nil
}

func (w *work) end() error {
	var hash, objects uint64
	w.s.visit(func(namespace, name, version string) {
		hash += fingerprint(namespace, name, version)
		objects++
	})
	state, err := w.c.ask("state")
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%016x", hash)
	line{"phase": "end", "objects": objects, "hash": text, "same": state["hash"] == text}.print()
	return nil
}

// failing sends changes at a steady rate; every tenth reconcile fails and is tried again after a backoff.
func (w *work) failing(rate, seconds uint64) error {
	// Each change is reconciled well once, and nine changes bring a failure.
	changes := rate * seconds * 9 / 10
	if err := w.mark(); err != nil {
		return err
	}
	w.m.fail()
	w.begin()
	s, err := w.order(fmt.Sprintf("events count=%d rate=%d", changes, rate*9/10))
	if err != nil {
		return err
	}
	used, wall, err := w.follow(s, false)
	if err != nil {
		return err
	}
	failed, givenUp := w.m.failed()
	reconciles := w.m.reconciles.Load() - w.counted
	if err := w.check("events=%d", changes); err != nil {
		return err
	}
	due := dueToFail(s.last, changes)
	if err := once("reconciles", reconciles, changes+due); err != nil {
		return err
	}
	if err := once("reconciles that failed", failed, due); err != nil {
		return err
	}
	if givenUp > 0 {
		return fmt.Errorf("%d failures were not tried again: void", givenUp)
	}
	l := w.line("failing", used, wall, reconciles)
	l["reconciles_per_s"] = float64(reconciles) / wall.Seconds()
	l["failed_share"] = float64(failed) / float64(reconciles)
	l["cpu_ms_per_s"] = float64(used) / 1e6 / wall.Seconds()
	l.print()
	return nil
}

// adds prints the cost of adds to a queue.
func (w *work) adds(phase string, adds, runs uint64) {
	line{"phase": phase, "adds": adds, "cpu_ns_per_add": float64(cpu()-w.cpu) / float64(adds),
		"runs_per_add": float64(runs) / float64(adds)}.print()
}

// delays prints the memory of very many delayed keys, and the punctuality of those that fall due.
func (w *work) delays(count, due, seconds uint64) error {
	seen := w.s.delays(count, due, seconds)
	if uint64(len(seen.late)) != due || seen.tooLate {
		return fmt.Errorf("%d keys were handed out of %d, too late: %t: void", len(seen.late), due, seen.tooLate)
	}
	slices.Sort(seen.late)
	ms := func(part float64) float64 { return quantile(seen.late, part) / 1e3 }
	line{"phase": "delays", "keys": count, "due": due, "late_p50_ms": ms(0.5), "late_p99_ms": ms(0.99),
		"late_max_ms": ms(1), "bytes_per_key": float64(seen.bytes) / float64(count),
		"cpu_ns_per_add": float64(seen.cpu) / float64(count)}.print()
	return nil
}
