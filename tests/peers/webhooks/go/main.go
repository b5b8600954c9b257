// The kind of ../src/main.rs in controller-runtime, for ../run.
//
// webhooks-go PORT FOLDER: FOLDER has tls.crt and tls.key. Ends when it is killed.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	webhookconversion "sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

const group = "batch.example.dev"

type Schedule struct {
	Minute    string `json:"minute"`
	Hour      string `json:"hour"`
	DayOfWeek string `json:"dayOfWeek"`
}

type Target struct {
	Name    string `json:"name"`
	Address string `json:"address"`
}

type BackupSpec struct {
	Schedule Schedule `json:"schedule"`
	Host     string   `json:"host"`
	Keep     int32    `json:"keep"`
	Targets  []Target `json:"targets"`
}

type Backup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BackupSpec `json:"spec"`
}

type OldBackupSpec struct {
	Schedule string   `json:"schedule"`
	Host     string   `json:"host"`
	History  int32    `json:"history"`
	Targets  []Target `json:"targets"`
}

type OldBackup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              OldBackupSpec `json:"spec"`
}

func (*Backup) Hub() {}

var (
	_ conversion.Hub         = &Backup{}
	_ conversion.Convertible = &OldBackup{}
)

func (old *OldBackup) ConvertTo(to conversion.Hub) error {
	hub := to.(*Backup)
	hub.ObjectMeta = old.ObjectMeta
	fields := strings.Split(old.Spec.Schedule, " ")
	if len(fields) != 3 {
		return fmt.Errorf("%d fields instead of 3", len(fields))
	}
	hub.Spec.Schedule = Schedule{Minute: fields[0], Hour: fields[1], DayOfWeek: fields[2]}
	hub.Spec.Host = old.Spec.Host
	hub.Spec.Keep = old.Spec.History
	hub.Spec.Targets = old.Spec.Targets
	return nil
}

func (old *OldBackup) ConvertFrom(from conversion.Hub) error {
	hub := from.(*Backup)
	old.ObjectMeta = hub.ObjectMeta
	schedule := hub.Spec.Schedule
	old.Spec.Schedule = schedule.Minute + " " + schedule.Hour + " " + schedule.DayOfWeek
	old.Spec.Host = hub.Spec.Host
	old.Spec.History = hub.Spec.Keep
	old.Spec.Targets = hub.Spec.Targets
	return nil
}

type rules struct{}

func (rules) validate(backup *Backup) error {
	var all field.ErrorList
	if backup.Spec.Host == "" {
		all = append(all, field.Required(field.NewPath("spec", "host"), ""))
	}
	if backup.Spec.Keep < 0 {
		all = append(all, field.Invalid(field.NewPath("spec", "keep"), backup.Spec.Keep, "must be at least 0"))
	}
	if len(all) == 0 {
		return nil
	}
	return errors.NewInvalid(schema.GroupKind{Group: group, Kind: "Backup"}, backup.Name, all)
}

func (it rules) ValidateCreate(_ context.Context, backup *Backup) (admission.Warnings, error) {
	return nil, it.validate(backup)
}

func (it rules) ValidateUpdate(_ context.Context, _, backup *Backup) (admission.Warnings, error) {
	return nil, it.validate(backup)
}

func (rules) ValidateDelete(context.Context, *Backup) (admission.Warnings, error) {
	return nil, nil
}

func main() {
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Backup"}, &Backup{})
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: group, Version: "v1beta1", Kind: "Backup"}, &OldBackup{})
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: os.Args[2]})
	server.Register("/validate-batch-example-dev-v1-backup", admission.WithValidator(scheme, rules{}))
	server.Register("/convert-batch-example-dev-backup",
		webhookconversion.NewWebhookHandler(scheme, webhookconversion.NewRegistry()))
	log.Fatal(server.Start(context.Background()))
}

// As controller-gen writes them; no line is counted from here.

func (in *Backup) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Targets = append([]Target(nil), in.Spec.Targets...)
	return &out
}

func (in *OldBackup) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Targets = append([]Target(nil), in.Spec.Targets...)
	return &out
}
