// The rules of ../rules.json in the validator that kube-apiserver runs when it admits a custom resource: the time per
// object with the same rules and data as the Rust program beside it. Run with `go run . [ROUNDS]`.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Input is the file that both programs read.
type Input struct {
	Schema map[string]any `json:"schema"`
	Object map[string]any `json:"object"`
	Rules  []struct {
		Name string `json:"name"`
		Rule string `json:"rule"`
	} `json:"rules"`
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// structural returns the schema of a whole resource whose spec has these rules.
func structural(input Input, rules []any) *schema.Structural {
	spec := map[string]any{"x-kubernetes-validations": rules}
	for key, value := range input.Schema {
		spec[key] = value
	}
	text, err := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{"spec": spec}})
	check(err)
	var props v1.JSONSchemaProps
	check(json.Unmarshal(text, &props))
	var internal apiextensions.JSONSchemaProps
	check(v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&props, &internal, nil))
	result, err := schema.NewStructural(&internal)
	check(err)
	return result
}

func measure(name string, rounds int, input Input, rules []any) {
	structural := structural(input, rules)
	validator := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	object := map[string]any{"apiVersion": "v1", "kind": "Web", "spec": input.Object}
	var times []float64
	for range rounds {
		begin, count := time.Now(), 0
		for time.Since(begin) < 50*time.Millisecond {
			for range 64 {
				errs, _ := validator.Validate(context.Background(), nil, structural, object, nil, celconfig.RuntimeCELCostBudget)
				if len(errs) > 0 {
					check((field.ErrorList)(errs).ToAggregate())
				}
				count++
			}
		}
		times = append(times, float64(time.Since(begin).Nanoseconds())/float64(count))
	}
	slices.Sort(times)
	fmt.Printf("| %s | %.2f µs |\n", name, times[len(times)/2]/1000)
}

func main() {
	rounds := 15
	if len(os.Args) > 1 {
		var err error
		rounds, err = strconv.Atoi(os.Args[1])
		check(err)
	}
	text, err := os.ReadFile("../rules.json")
	check(err)
	var input Input
	// As the server reads bodies: whole numbers become int64.
	check(utiljson.Unmarshal(text, &input))
	var rules []any
	for _, rule := range input.Rules {
		rules = append(rules, map[string]any{"rule": rule.Rule})
	}
	fmt.Println("| all rules of a definition on one object | kube-apiserver's validator |\n|---|---|")
	measure("two fields", rounds, input, rules[:1])
	measure("all five", rounds, input, rules)
}
