package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"os"

	corev1 "k8s.io/api/core/v1"
)

// encode writes the load generator's Pods in protobuf: for each a length of four bytes, big-endian,
// and the message.
func encode(server, out string) error {
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	defer file.Close()
	buffered := bufio.NewWriterSize(file, 1<<20)
	next := ""
	for {
		answer, err := http.Get(server + "/api/v1/pods?limit=500&continue=" + next)
		if err != nil {
			return err
		}
		var list corev1.PodList
		err = json.NewDecoder(answer.Body).Decode(&list)
		answer.Body.Close()
		if err != nil {
			return err
		}
		for at := range list.Items {
			bytes, err := list.Items[at].Marshal()
			if err != nil {
				return err
			}
			if err := binary.Write(buffered, binary.BigEndian, uint32(len(bytes))); err != nil {
				return err
			}
			if _, err := buffered.Write(bytes); err != nil {
				return err
			}
		}
		if next = list.Continue; next == "" {
			return buffered.Flush()
		}
	}
}
