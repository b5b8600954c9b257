// Command kube-apiserver runs a real kube-apiserver on an etcd of its own, in one process.
//
// It exists for tests: every flag is passed on to kube-apiserver, except --etcd-data-dir, which
// names the folder of the embedded etcd. The etcd listens on free loopback ports, chosen before it
// starts (with port 0 it would advertise port 0).
package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

const dataDirFlag = "--etcd-data-dir="

func main() {
	dataDir, flags, err := splitFlags(os.Args[1:])
	if err != nil {
		fail(err)
	}
	endpoint, err := startEtcd(dataDir)
	if err != nil {
		fail(fmt.Errorf("cannot start etcd in %s: %w", dataDir, err))
	}
	command := app.NewAPIServerCommand()
	command.SetArgs(append(flags, "--etcd-servers="+endpoint))
	os.Exit(cli.Run(command))
}

func splitFlags(args []string) (dataDir string, rest []string, err error) {
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, dataDirFlag); ok {
			dataDir = value
		} else {
			rest = append(rest, arg)
		}
	}
	if dataDir == "" {
		return "", nil, fmt.Errorf("%sDIR is required", dataDirFlag)
	}
	return dataDir, rest, nil
}

func startEtcd(dataDir string) (string, error) {
	client, err := freeURL()
	if err != nil {
		return "", err
	}
	peer, err := freeURL()
	if err != nil {
		return "", err
	}
	config := embed.NewConfig()
	config.Dir = dataDir
	config.LogLevel = "error"
	config.UnsafeNoFsync = true
	config.ListenClientUrls = []url.URL{client}
	config.AdvertiseClientUrls = []url.URL{client}
	config.ListenPeerUrls = []url.URL{peer}
	config.AdvertisePeerUrls = []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return "", err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return client.String(), nil
	case err := <-etcd.Err():
		return "", err
	case <-time.After(60 * time.Second):
		return "", fmt.Errorf("not ready after 60 s")
	}
}

// freeURL asks the kernel for a loopback port that is free now.
func freeURL() (url.URL, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return url.URL{}, err
	}
	defer listener.Close()
	return url.URL{Scheme: "http", Host: listener.Addr().String()}, nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "kube-apiserver for tests:", err)
	os.Exit(1)
}
