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

// logLevel logs errors, except in phases that measure errors: no framework logs them there.
func logLevel(o options) zapcore.Level {
	if has(o, "failing:") {
		return zapcore.FatalLevel
	}
	return zapcore.ErrorLevel
}

// nonblocking asks for an informer without waiting for the first list.
var nonblocking = cache.BlockUntilSynced(false)

func itoa(number int) string { return strconv.Itoa(number) }

// has returns whether there is such a phase.
func has(o options, phase string) bool {
	for _, each := range o.phases {
		if strings.HasPrefix(each, phase) {
			return true
		}
	}
	return false
}

// cached is the transform of objects before the cache stores them.
func cached(o options) cache.Options {
	if o.mode == "stripped" {
		return cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	}
	return cache.Options{}
}

func controllerOptions(workers int) controller.Options {
	return controller.Options{MaxConcurrentReconciles: workers}
}
