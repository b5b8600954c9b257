package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const stampKey = "peers.example.dev/stamp"

func clock(id int32) uint64 {
	var time unix.Timespec
	check(unix.ClockGettime(id, &time))
	return uint64(time.Nano())
}

// nanos is the monotonic clock, the same in all processes of a machine.
func nanos() uint64 { return clock(unix.CLOCK_MONOTONIC) }

// cpu is what this process has used, user and system, in nanoseconds.
func cpu() uint64 { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// resident is memory now and at its highest, in bytes.
func resident() (now, peak uint64) {
	text, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		if len(words) != 3 {
			continue
		}
		switch words[0] {
		case "VmRSS:":
			now = number(words[1]) * 1024
		case "VmHWM:":
			peak = number(words[1]) * 1024
		}
	}
	return now, peak
}

// meter counts what reconciles saw.
type meter struct {
	reconciles, newest, firstAt, lastAt atomic.Uint64
	timing                              atomic.Bool
	sleep                               atomic.Int64
	lock                                sync.Mutex
	latencies                           []uint64
}

func (m *meter) saw(version string, annotations map[string]string) {
	now := nanos()
	parsed, _ := strconv.ParseUint(version, 10, 64)
	if m.timing.Load() {
		if written, err := strconv.ParseUint(annotations[stampKey], 10, 64); err == nil && written > 0 && now > written {
			m.lock.Lock()
			m.latencies = append(m.latencies, now-written)
			m.lock.Unlock()
		}
	}
	raise(&m.newest, parsed)
	raise(&m.lastAt, now)
	if m.reconciles.Add(1) == 1 {
		m.firstAt.Store(now)
	}
	if sleep := m.sleep.Load(); sleep > 0 {
		time.Sleep(time.Duration(sleep))
	}
}

func raise(to *atomic.Uint64, value uint64) {
	for {
		old := to.Load()
		if old >= value || to.CompareAndSwap(old, value) {
			return
		}
	}
}

// fingerprint is FNV-1a of namespace/name=version; entries are added up.
func fingerprint(namespace, name, version string) uint64 {
	hash := uint64(0xcbf29ce484222325)
	for _, part := range []string{namespace, "/", name, "=", version} {
		for at := range len(part) {
			hash = (hash ^ uint64(part[at])) * 0x100000001b3
		}
	}
	return hash
}

// control is the line protocol to the load generator.
type control struct {
	connection net.Conn
	read       *bufio.Reader
}

func (c *control) ask(command string) (map[string]string, error) {
	if _, err := fmt.Fprintln(c.connection, command); err != nil {
		return nil, err
	}
	line, err := c.read.ReadString('\n')
	if err != nil {
		return nil, err
	}
	words := strings.Fields(line)
	if len(words) == 0 || words[0] != "ok" {
		return nil, fmt.Errorf("%q was answered %q", command, line)
	}
	fields := map[string]string{}
	for _, word := range words[1:] {
		if name, value, ok := strings.Cut(word, "="); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// subject is what a library has to be able to do.
type subject interface {
	meter() *meter
	start() error
	isSynced() bool
	version(namespace, name string) string
	visit(func(namespace, name, version string))
	lookup(app string) int
	queue(adds uint64) (runs uint64, ok bool)
}

const (
	look     = time.Millisecond
	calm     = 100 * time.Millisecond
	pause    = time.Second
	patience = 4 * time.Minute
	// Lookups end after so long, if there were so many.
	long = 4 * time.Second
	few  = 400
)

type work struct {
	options
	s       subject
	m       *meter
	c       *control
	base    uint64
	steady  uint64
	cpu     uint64
	wall    time.Time
	began   uint64
	counted uint64
}

type line map[string]any

func (l line) print() {
	text, err := json.Marshal(l)
	check(err)
	fmt.Println(string(text))
}

func run(o options, s subject) error {
	connection, err := net.Dial("tcp", o.control)
	if err != nil {
		return err
	}
	base, _ := resident()
	w := &work{options: o, s: s, m: s.meter(), base: base, steady: base}
	w.c = &control{connection, bufio.NewReader(connection)}
	for _, phase := range o.phases {
		words := strings.Split(phase, ":")
		at := func(index int) uint64 {
			if index < len(words) {
				return number(words[index])
			}
			return 0
		}
		switch words[0] {
		case "sync":
			err = w.sync()
		case "events":
			err = w.events(at(1), at(2))
		case "churn":
			err = w.churn(at(1))
		case "rate":
			err = w.rate(at(1), at(2))
		case "relist":
			err = w.relist(max(at(1), 1))
		case "index":
			err = w.index(at(1), at(2))
		case "idle":
			w.begin()
			time.Sleep(time.Duration(at(1)) * time.Second)
			line{"phase": "idle", "cpu_ms_per_s": float64(cpu()-w.cpu) / 1e6 / float64(at(1))}.print()
		case "queue":
			w.begin()
			if runs, ok := s.queue(at(1)); ok {
				line{"phase": "queue", "adds": at(1), "cpu_ns_per_add": float64(cpu()-w.cpu) / float64(at(1)),
					"runs_per_add": float64(runs) / float64(at(1))}.print()
			}
		case "tasks":
			// Ours alone is compared with its runtime's own tasks.
		case "flight":
			err = w.flight(at(1))
		default:
			err = fmt.Errorf("no phase %q", phase)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", phase, err)
		}
	}
	return w.end()
}

func (w *work) begin() {
	w.wall, w.cpu, w.began = time.Now(), cpu(), nanos()
	w.counted = w.m.reconciles.Load()
}

// mark: what is served from now on is counted.
func (w *work) mark() error {
	_, err := w.c.ask("mark")
	return err
}

// check fails unless exactly that was served since the mark: a phase without its work is void.
func (w *work) check(served string, words ...any) error {
	_, err := w.c.ask("check " + fmt.Sprintf(served, words...))
	return err
}

// once fails unless there was one for each, give or take one in a hundred.
func once(what string, seen, due uint64) error {
	if (max(seen, due)-min(seen, due))*100 <= due {
		return nil
	}
	return fmt.Errorf("%d %s, not %d: void", seen, what, due)
}

func (w *work) line(phase string, used uint64, wall time.Duration, count uint64) line {
	each := float64(max(count, 1))
	return line{"phase": phase, "count": count, "cpu_us": float64(used) / 1e3 / each,
		"wall_s": wall.Seconds(), "per_s": each / wall.Seconds()}
}

func (w *work) each(resident uint64) float64 {
	return float64(resident-min(resident, w.base)) / 1e3 / float64(w.objects)
}

func until(what string, done func() bool) error {
	deadline := time.Now().Add(patience)
	for !done() {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not come", what)
		}
		time.Sleep(look)
	}
	return nil
}

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
	told, seen, since, used := uint64(0), w.m.reconciles.Load(), time.Now(), cpu()-w.cpu
	for time.Now().Before(deadline) {
		now := w.m.reconciles.Load()
		if now != seen {
			seen, since, used = now, time.Now(), cpu()-w.cpu
		}
		if acknowledge && now-w.counted > told {
			told = now - w.counted
			if _, err := fmt.Fprintf(w.c.connection, "ack %d\n", told); err != nil {
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
		// Nobody would open the window.
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
	// Whoever lists by a stream begins to watch before it has read the list to its end: an event
	// behind the list tells when that was.
	behind, err := w.order("events count=1 window=0")
	if err != nil {
		return err
	}
	used, wall, err := w.follow(behind, false)
	if err != nil {
		return err
	}
	if !w.has(hidden) {
		return fmt.Errorf("the list did not bring what had changed: void")
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
