// Command fake-kubelet serves the part of a kubelet that kube-apiserver calls for exec, attach and
// port-forward, on the streaming server that kubelets and container runtimes use. It runs no
// containers: commands are scripted programs in this process, ports are ports of this machine.
//
// It exists for tests: it listens on a free loopback port with a certificate of its own, prints that
// port as one line, and ends when its standard input ends.
//
// Commands: `echo WORD...`, `cat`, `exit CODE`, `both` (writes to both outputs, then ends with 3),
// `flood BYTES`, `count` (reads all of its input and prints its length), `size` (prints the first
// terminal size that it receives), `sleep` (until its input ends or its client is gone).
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	"k8s.io/utils/exec"
)

const (
	idleTimeout     = 4 * time.Hour
	creationTimeout = 30 * time.Second
)

func main() {
	certificate, err := selfSigned()
	if err != nil {
		fail(err)
	}
	outer, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail(err)
	}
	// Address of the container runtime in a real node: a kubelet that is sent WebSocket streams of version 5
	// translates them and calls it by SPDY.
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail(err)
	}
	runtime := handler(nil)
	kubelet := handler(&url.URL{Scheme: "http", Host: inner.Addr().String()})
	go func() { fail(http.Serve(inner, runtime)) }()
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}}
	go func() { fail(http.Serve(tls.NewListener(outer, config), kubelet)) }()
	fmt.Println(outer.Addr().(*net.TCPAddr).Port)
	io.Copy(io.Discard, os.Stdin)
}

// handler serves streams; those of version 5 it translates for the runtime at `inner`, if there is one.
func handler(inner *url.URL) http.Handler {
	mux := http.NewServeMux()
	runtime := runtime{}
	command := func(serve func(http.ResponseWriter, *http.Request, *remotecommand.Options)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			options, err := remotecommand.NewOptions(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			if inner != nil && wsstream.IsWebSocketRequestWithStreamCloseProtocol(r) {
				location := *r.URL
				location.Scheme, location.Host = inner.Scheme, inner.Host
				wanted := proxy.Options{Stdin: options.Stdin, Stdout: options.Stdout, Stderr: options.Stderr, Tty: options.TTY}
				proxy.NewStreamTranslatorHandler(&location, nil, 0, wanted).ServeHTTP(w, r)
				return
			}
			serve(w, r, options)
		}
	}
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", command(func(w http.ResponseWriter, r *http.Request, options *remotecommand.Options) {
		remotecommand.ServeExec(w, r, runtime, r.PathValue("pod"), "", r.PathValue("container"), r.URL.Query()["command"],
			options, idleTimeout, creationTimeout, remotecommand.SupportedStreamingProtocols)
	}))
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", command(func(w http.ResponseWriter, r *http.Request, options *remotecommand.Options) {
		remotecommand.ServeAttach(w, r, runtime, r.PathValue("pod"), "", r.PathValue("container"),
			options, idleTimeout, creationTimeout, remotecommand.SupportedStreamingProtocols)
	}))
	mux.HandleFunc("/portForward/{namespace}/{pod}", func(w http.ResponseWriter, r *http.Request) {
		options, err := portforward.NewV4Options(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		portforward.ServePortForward(w, r, runtime, r.PathValue("pod"), "", options,
			idleTimeout, creationTimeout, portforward.SupportedProtocols)
	})
	return mux
}

type runtime struct{}

func (runtime) ExecInContainer(ctx context.Context, _, _, container string, command []string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	argument := func(index int) int {
		if index >= len(command) {
			return 0
		}
		number, _ := strconv.Atoi(command[index])
		return number
	}
	switch command[0] {
	case "echo":
		fmt.Fprintln(out, strings.Join(command[1:], " "))
		return nil
	case "cat":
		_, err := io.Copy(out, in)
		return err
	case "exit":
		return exited(argument(1))
	case "both":
		fmt.Fprint(out, "to stdout")
		fmt.Fprint(errOut, "to stderr")
		return exited(3)
	case "flood":
		_, err := io.CopyN(out, zeros{}, int64(argument(1)))
		return err
	case "count":
		length, err := io.Copy(io.Discard, in)
		fmt.Fprint(out, length)
		return err
	case "size":
		size := <-resize
		fmt.Fprintf(out, "%dx%d tty=%t", size.Width, size.Height, tty)
		return nil
	case "sleep":
		io.Copy(io.Discard, in)
		return nil
	}
	return fmt.Errorf("executable file %q not found in container %s", command[0], container)
}

// AttachContainer is attached to a program that greets and then is `cat`.
func (runtime) AttachContainer(_ context.Context, _, _, container string, in io.Reader, out, _ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize) error {
	fmt.Fprintf(out, "attached to %s\n", container)
	if in == nil {
		return nil
	}
	_, err := io.Copy(out, in)
	return err
}

func (runtime) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	connection, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer connection.Close()
	go func() {
		io.Copy(connection, stream)
		connection.Close()
	}()
	// An end of this direction is the end; errors are those of the line above.
	io.Copy(stream, connection)
	return nil
}

func exited(code int) error {
	return exec.CodeExitError{Err: fmt.Errorf("exit status %d", code), Code: code}
}

type zeros struct{}

func (zeros) Read(into []byte) (int, error) {
	clear(into)
	return len(into), nil
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "fake-kubelet"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "fake kubelet:", err)
	os.Exit(1)
}
