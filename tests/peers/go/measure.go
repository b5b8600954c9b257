package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
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

// cpu is the CPU time of this process, user and system, in nanoseconds.
func cpu() uint64 { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// resident is memory now and at the peak, in bytes.
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

// meter counts the versions that reconciles saw.
type meter struct {
	reconciles, newest, firstAt, lastAt atomic.Uint64
	timing                              atomic.Bool
	sleep                               atomic.Int64
	failing                             atomic.Bool
	lock                                sync.Mutex
	latencies                           []uint64
	failures                            map[uint64]uint64
}

const (
	// While reconciles fail, one version in that many does,
	failEvery = 36
	// and each so often in a row: of 40 reconciles 4 fail.
	failInARow = 4
)

// fail: from now on some reconciles fail.
func (m *meter) fail() {
	m.failures = map[uint64]uint64{}
	m.failing.Store(true)
}

// failed ends the failures; the numbers of failed reconciles and of versions not tried to the end.
func (m *meter) failed() (failed, givenUp uint64) {
	m.failing.Store(false)
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, times := range m.failures {
		failed += min(times, failInARow)
		if times <= failInARow {
			givenUp++
		}
	}
	return failed, givenUp
}

// dueToFail: how many of so many changes fail, the last of which has this version.
func dueToFail(last, changes uint64) uint64 {
	return (last/failEvery - (last-min(changes, last))/failEvery) * failInARow
}

// fails returns whether the reconcile of this version has to fail.
func (m *meter) fails(version string) bool {
	if !m.failing.Load() {
		return false
	}
	parsed, _ := strconv.ParseUint(version, 10, 64)
	if parsed%failEvery != 0 {
		return false
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	m.failures[parsed]++
	return m.failures[parsed] <= failInARow
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

// subject is the interface that each library implements.
type subject interface {
	meter() *meter
	start() error
	isSynced() bool
	version(namespace, name string) string
	visit(func(namespace, name, version string))
	lookup(app string) int
	queue(name string, adds uint64) (runs uint64)
	ownQueue(adds uint64) (runs uint64)
	delays(count, due, seconds uint64) delayed
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
		case "collect":
			w.collect()
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
		case "failing":
			err = w.failing(at(1), at(2))
		case "queue":
			w.begin()
			w.adds("queue", at(1), s.queue("peers", at(1)))
			w.begin()
			w.adds("unmeasured", at(1), s.queue("", at(1)))
		case "own":
			w.begin()
			w.adds("own", at(1), s.ownQueue(at(1)))
		case "delays":
			err = w.delays(at(1), at(2), at(3))
		case "tasks", "bare":
			// Ours alone is compared with the runtime's own tasks.
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

// mark: objects and events served from now on are counted.
func (w *work) mark() error {
	_, err := w.c.ask("mark")
	return err
}

// check fails unless exactly that was served since the mark: a phase without the work is void.
func (w *work) check(served string, words ...any) error {
	_, err := w.c.ask("check " + fmt.Sprintf(served, words...))
	return err
}

// once fails unless each was seen exactly once.
func once(label string, seen, due uint64) error {
	if seen == due {
		return nil
	}
	return fmt.Errorf("%d %s, not %d: void", seen, label, due)
}

func (w *work) line(phase string, used uint64, wall time.Duration, count uint64) line {
	each := float64(max(count, 1))
	return line{"phase": phase, "count": count, "cpu_us": float64(used) / 1e3 / each,
		"wall_s": wall.Seconds(), "per_s": each / wall.Seconds()}
}

func (w *work) each(resident uint64) float64 {
	return float64(resident-min(resident, w.base)) / 1e3 / float64(w.objects)
}

func until(label string, done func() bool) error {
	deadline := time.Now().Add(patience)
	for !done() {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not come", label)
		}
		time.Sleep(look)
	}
	return nil
}
