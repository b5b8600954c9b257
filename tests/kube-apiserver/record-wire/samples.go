package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strings"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// samples writes a line for each kind, or for each named kind.
func samples(names []string) {
	if len(names) == 0 {
		for kind := range scheme.Scheme.AllKnownTypes() {
			version := kind.GroupVersion().String()
			if kind.Version != runtime.APIVersionInternal && !strings.HasSuffix(kind.Kind, "Options") && kind.Kind != "WatchEvent" {
				names = append(names, version+","+kind.Kind)
			}
		}
		sort.Strings(names)
	}
	encoder := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	for _, name := range names {
		for _, form := range []string{"full", "hollow"} {
			kind := kindOf(name)
			object, err := scheme.Scheme.New(kind)
			must(err)
			filler := filler{hollow: form == "hollow"}
			filler.fill(reflect.ValueOf(object).Elem(), 0)
			object.GetObjectKind().SetGroupVersionKind(kind)
			text, err := json.Marshal(object)
			must(err)
			var wire bytes.Buffer
			if err := encoder.Encode(object, &wire); err != nil {
				continue
			}
			fmt.Println(form, name, base64.StdEncoding.EncodeToString(wire.Bytes()), string(text))
		}
	}
}

// filler puts a value into every field.
type filler struct {
	// count makes the values differ.
	count int64
	// hollow asks to put only zero values into fields, and none into those of special types.
	hollow bool
}

// deepest is the number of structs within each other that are filled.
const deepest = 14

func (f *filler) fill(value reflect.Value, depth int) {
	f.count++
	if f.hollow && isSpecial(value.Type()) || !f.hollow && f.special(value, depth) {
		return
	}
	switch value.Kind() {
	case reflect.Pointer:
		if depth < deepest {
			value.Set(reflect.New(value.Type().Elem()))
			f.fill(value.Elem(), depth)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if field := value.Field(i); field.CanSet() {
				f.fill(field, depth+1)
			}
		}
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 && f.hollow {
			return
		} else if value.Type().Elem().Kind() == reflect.Uint8 {
			value.SetBytes([]byte{0xff, byte(f.count), 0})
		} else if depth < deepest {
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
			f.fill(value.Index(0), depth)
		}
	case reflect.Map:
		if depth < deepest {
			value.Set(reflect.MakeMap(value.Type()))
			for _, key := range []string{"b", "a"} {
				element := reflect.New(value.Type().Elem()).Elem()
				f.fill(element, depth+1)
				if element.Type() == reflect.TypeFor[[]byte]() && f.hollow {
					// A value without bytes is read as a value with no bytes.
					element.SetBytes([]byte{})
				}
				value.SetMapIndex(reflect.ValueOf(key).Convert(value.Type().Key()), element)
			}
		}
	default:
		if !f.hollow {
			f.scalar(value)
		}
	}
}

// isSpecial reports whether a type, or the pointed-to type, has a special form.
func isSpecial(of reflect.Type) bool {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return letterOf[of.String()] != "" || of == reflect.TypeFor[metav1.TypeMeta]() ||
		of == reflect.TypeFor[apiextensions.JSONSchemaProps]()
}

// scalar puts a value into a field without parts: negative integers and texts beyond ASCII among them.
func (f *filler) scalar(value reflect.Value) {
	switch value.Kind() {
	case reflect.String:
		value.SetString(fmt.Sprintf("t%d·", f.count))
	case reflect.Bool:
		value.SetBool(f.count%3 != 0)
	case reflect.Int32:
		value.SetInt(f.count * (1 - f.count%2*2))
	case reflect.Int64:
		value.SetInt(f.count * 3000000000 * (1 - f.count%2*2))
	case reflect.Float64:
		value.SetFloat(float64(f.count) + 0.25)
	}
}

// special fills the types whose fields must fit together.
func (f *filler) special(value reflect.Value, depth int) bool {
	moment := time.Unix(1700000000+f.count, f.count*1000).UTC()
	switch target := value.Addr().Interface().(type) {
	case *metav1.TypeMeta:
	case *metav1.Time:
		target.Time = moment.Truncate(time.Second)
	case *metav1.MicroTime:
		target.Time = moment
	case *metav1.Duration:
		target.Duration = time.Duration(f.count) * 1500 * time.Millisecond
	case *resource.Quantity:
		*target = resource.MustParse(fmt.Sprintf("%dm", f.count))
		_ = target.String()
	case *intstr.IntOrString:
		*target = intstr.FromInt32(int32(f.count))
		if f.count%2 == 0 {
			*target = intstr.FromString(fmt.Sprintf("%d%%", f.count))
		}
	case *metav1.FieldsV1:
		target.Raw = []byte(`{"f:spec":{"f:a":{}}}`)
	case *runtime.RawExtension:
		target.Raw = []byte(fmt.Sprintf(`{"n":%d}`, f.count))
	case *apiextensions.JSON:
		target.Raw = []byte(fmt.Sprintf(`{"n":[%d]}`, f.count))
	case *apiextensions.JSONSchemaProps:
		if depth > 5 {
			target.Type = "string"
			return true
		}
		return false
	case *apiextensions.JSONSchemaPropsOrBool:
		target.Allows = true
		if f.count%2 == 0 {
			target.Schema = &apiextensions.JSONSchemaProps{Type: "string"}
		}
	case *apiextensions.JSONSchemaPropsOrArray:
		target.Schema = &apiextensions.JSONSchemaProps{Type: "string"}
		if f.count%2 == 0 {
			target.Schema, target.JSONSchemas = nil, []apiextensions.JSONSchemaProps{{Type: "a"}, {}}
		}
	case *apiextensions.JSONSchemaPropsOrStringArray:
		target.Property = []string{"x", "y"}
		if f.count%2 == 0 {
			target.Property, target.Schema = nil, &apiextensions.JSONSchemaProps{Format: "f"}
		}
	default:
		return false
	}
	return true
}
