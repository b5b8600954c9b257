//go:build tools

// Keeps the tools that are built from this module in go.sum.
package main

import (
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
