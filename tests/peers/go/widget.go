package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Widget is a custom resource of about 1 KB.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WidgetSpec   `json:"spec"`
	Status WidgetStatus `json:"status,omitempty"`
}

type WidgetSpec struct {
	Host     string   `json:"host"`
	Paths    []string `json:"paths"`
	Replicas int32    `json:"replicas"`
	Size     string   `json:"size"`
}

type WidgetStatus struct {
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	ReadyReplicas      int32              `json:"readyReplicas,omitempty"`
}

type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

// Methods that controller-gen would generate.

func (w *Widget) DeepCopyObject() runtime.Object {
	out := *w
	out.ObjectMeta = *w.ObjectMeta.DeepCopy()
	out.Spec.Paths = append([]string(nil), w.Spec.Paths...)
	out.Status.Conditions = make([]metav1.Condition, len(w.Status.Conditions))
	for at := range w.Status.Conditions {
		w.Status.Conditions[at].DeepCopyInto(&out.Status.Conditions[at])
	}
	return &out
}

func (l *WidgetList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = make([]Widget, len(l.Items))
	for at := range l.Items {
		out.Items[at] = *l.Items[at].DeepCopyObject().(*Widget)
	}
	return &out
}

var widgetVersion = schema.GroupVersion{Group: "peers.example.dev", Version: "v1"}

func addWidgets(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(widgetVersion, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, widgetVersion)
	return nil
}
