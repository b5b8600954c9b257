// Sends one review again and again, for ../../run.
//
// webhooks-load URL FILE CONNECTIONS SECONDS prints the number of answers, and the microseconds of p50 and p99. With 0
// seconds it sends the review once and prints the answer.
package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func send(client *http.Client, url string, body []byte) []byte {
	answer, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != 200 {
		log.Fatal(answer.Status, err, string(read))
	}
	return read
}

func main() {
	url, connections, seconds := os.Args[1], number(os.Args[3]), number(os.Args[4])
	body, err := os.ReadFile(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	// The certificate is the run's own.
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true},
		MaxIdleConnsPerHost: connections,
	}
	client := &http.Client{Transport: transport}
	if seconds == 0 {
		os.Stdout.Write(send(client, url, body))
		return
	}
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	taken := make([][]time.Duration, connections)
	var all sync.WaitGroup
	for at := range taken {
		all.Go(func() {
			for began := time.Now(); began.Before(end); began = time.Now() {
				send(client, url, body)
				taken[at] = append(taken[at], time.Since(began))
			}
		})
	}
	all.Wait()
	sorted := slices.Sorted(slices.Values(slices.Concat(taken...)))
	at := func(share float64) int64 { return sorted[int(float64(len(sorted)-1)*share)].Microseconds() }
	fmt.Println(len(sorted), at(0.5), at(0.99))
}
