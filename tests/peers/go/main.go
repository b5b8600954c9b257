// The driver over controller-runtime and client-go: a manager whose reconciler gets the object from
// the cache, or a shared informer alone.
//
//	peers-go --server URL --control ADDRESS --kind pod --n 10000 --mode json|protobuf|stripped
//	         --work cache|controller --workers 4 --phases sync,events:60000
//	peers-go encode --server URL --out FILE       Pods of the load generator, in protobuf
//
// Mode "protobuf" is the default of both libraries with built-in kinds; "json" forces the content
// type; "stripped" is the default and removes managed fields before objects are cached. Custom resources
// are always JSON. The phase "collect" reads memory after a collection.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

type options struct {
	server, control, kind, mode, out string
	objects                          uint64
	// Reconciles at once; 0 is the default.
	workers    int
	controller bool
	phases     []string
}

func read(words []string) options {
	o := options{kind: "pod", mode: "protobuf", objects: 10000, phases: []string{"sync"}}
	for at := 0; at+1 < len(words); at += 2 {
		value := words[at+1]
		switch strings.TrimLeft(words[at], "-") {
		case "server":
			o.server = value
		case "control":
			o.control = value
		case "kind":
			o.kind = value
		case "mode":
			o.mode = value
		case "out":
			o.out = value
		case "n":
			o.objects = number(value)
		case "workers":
			o.workers = int(number(value))
		case "work":
			o.controller = value == "controller"
		case "phases":
			o.phases = strings.Split(value, ",")
		}
	}
	return o
}

func number(text string) uint64 {
	value, err := strconv.ParseUint(text, 10, 64)
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers-go:", err)
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "encode" {
		o := read(os.Args[2:])
		check(encode(o.server, o.out))
		return
	}
	o := read(os.Args[1:])
	var s subject
	if o.controller {
		s = newManager(o)
	} else {
		s = newInformer(o)
	}
	check(run(o, s))
}
