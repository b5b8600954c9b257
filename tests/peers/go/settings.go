package main

import (
	"strconv"
	"strings"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

type watchInterface = watch.Interface

var everything = fields.Everything()

const levelError = zapcore.ErrorLevel

// nonblocking asks for an informer without waiting for its first list.
var nonblocking = cache.BlockUntilSynced(false)

func itoa(number int) string { return strconv.Itoa(number) }

// flightOf tells whether reconciles will sleep, all at once.
func flightOf(o options) bool {
	for _, phase := range o.phases {
		if strings.HasPrefix(phase, "flight:") {
			return true
		}
	}
	return false
}

func controllerOptions(workers int) controller.Options {
	return controller.Options{MaxConcurrentReconciles: workers}
}
