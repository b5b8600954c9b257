// Command record-wire adds the protobuf form of every field to the types of the built-in kinds.
//
//	cd tests/kube-apiserver
//	./record-types.py https://127.0.0.1:6443 TOKEN | go run ./record-wire > ../../apiserver/src/typed/builtin.types
//	go run ./record-wire samples $(cut -d' ' -f2 ../../apiserver/src/protobuf/samples.txt | uniq) > samples.txt
//
// The program reads the lines of record-types.py (or a file that this program wrote: marks are replaced), finds the
// Go type of each line, and appends a mark to each field, from the field's tags. The format of marks is explained in
// apiserver/src/protobuf/message.rs. A field that Go does not write in protobuf gets no mark. The program ends with 1
// if a field has a form that the format cannot express.
//
// With "samples" the program writes two objects of each named kind ("apps/v1,Deployment"; all kinds if no kind is
// named): the first with a value in every field, the second with structs and zero values in all other fields. A line
// has "full" or "hollow", the kind, the protobuf form in base64, as k8s.io/apimachinery encodes it, and the JSON.
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// prefixes are the abbreviations of record-types.py, in the order in which they are tried.
var prefixes = [][2]string{
	{"io.k8s.apimachinery.pkg.apis.meta.", "&"},
	{"io.k8s.apimachinery.pkg.", "+"},
	{"io.k8s.api.", "%"},
}

// unserved are the lines of types that no document of kube-apiserver names.
var unserved = []string{
	"&v1.PartialObjectMetadata apiVersion:s kind:s metadata:@&v1.ObjectMeta={}",
	"&v1.PartialObjectMetadataList apiVersion:s items!:[]@&v1.PartialObjectMetadata kind:s metadata:@&v1.ListMeta={}",
	"&v1.APIGroup apiVersion:s kind:s name!:s preferredVersion:@&v1.GroupVersionForDiscovery serverAddressByClientCIDRs:[.]@&v1.ServerAddressByClientCIDR versions!:[.]@&v1.GroupVersionForDiscovery",
	"&v1.APIGroupList apiVersion:s groups!:[.]@&v1.APIGroup kind:s",
	"&v1.APIVersions apiVersion:s kind:s serverAddressByClientCIDRs!:[.]@&v1.ServerAddressByClientCIDR versions!:[.]s",
	"&v1.GroupVersionForDiscovery groupVersion!:s version!:s",
	"&v1.GroupVersionKind group!:s kind!:s version!:s",
	"&v1.ServerAddressByClientCIDR clientCIDR!:s serverAddress!:s",
	"%apidiscovery.v2.APIGroupDiscovery apiVersion:s kind:s metadata:@&v1.ObjectMeta versions:[.]@%apidiscovery.v2.APIVersionDiscovery",
	"%apidiscovery.v2.APIGroupDiscoveryList apiVersion:s items!:[.]@%apidiscovery.v2.APIGroupDiscovery kind:s metadata:@&v1.ListMeta",
	"%apidiscovery.v2.APIResourceDiscovery categories:[.]s resource!:s responseKind:@&v1.GroupVersionKind scope!:s shortNames:[.]s singularResource!:s subresources:[.]@%apidiscovery.v2.APISubresourceDiscovery verbs!:[.]s",
	"%apidiscovery.v2.APISubresourceDiscovery acceptedTypes:[.]@&v1.GroupVersionKind responseKind:@&v1.GroupVersionKind subresource!:s verbs!:[.]s",
	"%apidiscovery.v2.APIVersionDiscovery freshness:s resources:[.]@%apidiscovery.v2.APIResourceDiscovery version!:s",
}

func main() {
	must(apidiscovery.AddToScheme(scheme.Scheme))
	must(apiextensions.AddToScheme(scheme.Scheme))
	must(apiregistration.AddToScheme(scheme.Scheme))
	must(metav1.AddMetaToScheme(scheme.Scheme))
	if len(os.Args) > 1 && os.Args[1] == "samples" {
		samples(os.Args[2:])
		return
	}
	mark()
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "record-wire:", err)
		os.Exit(1)
	}
}

// types returns all types of the scheme and those that they need, by abbreviated name.
func types() map[string]reflect.Type {
	found := map[string]reflect.Type{}
	var visit func(reflect.Type)
	visit = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice:
			visit(of.Elem())
		case reflect.Map:
			visit(of.Elem())
		case reflect.Struct:
			name := modelName(of)
			if name == "" || found[name] != nil {
				return
			}
			found[name] = of
			for i := range of.NumField() {
				visit(of.Field(i).Type)
			}
		}
	}
	for kind, of := range scheme.Scheme.AllKnownTypes() {
		if kind.Version != runtime.APIVersionInternal {
			visit(of)
		}
	}
	return found
}

// modelName returns the name that a type has in record-types.py's lines.
func modelName(of reflect.Type) string {
	named, ok := reflect.New(of).Interface().(interface{ OpenAPIModelName() string })
	if !ok {
		return ""
	}
	name := named.OpenAPIModelName()
	for _, prefix := range prefixes {
		if rest, ok := strings.CutPrefix(name, prefix[0]); ok {
			return prefix[1] + rest
		}
	}
	return name
}

// mark copies the lines, with a mark at each field.
func mark() {
	known := types()
	lines := []string{}
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 1<<20)
	for input.Scan() {
		lines = append(lines, input.Text())
	}
	must(input.Err())
	for _, line := range unserved {
		if !contains(lines, strings.Fields(line)[0]) {
			lines = append(lines, line)
		}
	}
	for _, line := range lines {
		words := strings.Split(line, " ")
		of := known[strings.TrimSuffix(words[0], "^")]
		if of != nil && of.Kind() == reflect.Struct && !strings.HasPrefix(words[1], ":") {
			marks := map[string]string{}
			fieldMarks(of, "", marks)
			for i, word := range words[1:] {
				word, _, _ = strings.Cut(word, "#")
				name := strings.TrimRight(strings.SplitN(word, ":", 2)[0], "!?")
				if mark := marks[name]; mark != "" && !strings.HasPrefix(word, "=") {
					word += "#" + mark
				}
				words[i+1] = word
			}
		} else if of == nil {
			fmt.Fprintln(os.Stderr, "record-wire: no Go type for", words[0])
		}
		fmt.Println(strings.Join(words, " "))
	}
}

func contains(lines []string, name string) bool {
	for _, line := range lines {
		if strings.HasPrefix(line, name+" ") {
			return true
		}
	}
	return false
}

// fieldMarks collects the marks of a type's fields by their JSON name. Fields of embedded types are written in a
// message of their own, whose number comes first in the path.
func fieldMarks(of reflect.Type, path string, marks map[string]string) {
	for i := range of.NumField() {
		field := of.Field(i)
		tag := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue
		}
		json := strings.Split(field.Tag.Get("json"), ",")
		number := path + tag[1]
		if field.Anonymous && json[0] == "" {
			if field.Type.Kind() != reflect.Struct {
				must(fmt.Errorf("%s: embedded %s is no plain struct", of, field.Type))
			}
			fieldMarks(field.Type, number+".", marks)
			continue
		}
		if json[0] == "-" || json[0] == "" {
			must(fmt.Errorf("%s.%s is in protobuf only", of, field.Name))
		}
		flags := ""
		for _, option := range json[1:] {
			if option == "omitempty" || option == "omitzero" {
				flags = "-"
			}
		}
		marks[json[0]] = number + flags + form(field.Type)
	}
}

// form returns the flags and the letters of a field's type.
func form(of reflect.Type) string {
	switch {
	case of.Kind() == reflect.Pointer:
		return "*" + letter(of.Elem())
	case letterOf[of.String()] != "" || isList(of) || of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Uint8:
		return letter(of)
	case of.Kind() == reflect.Slice:
		return "[" + letter(of.Elem())
	case of.Kind() == reflect.Map:
		if of.Key().Kind() != reflect.String {
			must(fmt.Errorf("the keys of %s are no strings", of))
		}
		return "{" + letter(of.Elem())
	}
	return letter(of)
}

// letterOf has the types with a form of their own.
var letterOf = map[string]string{
	"v1.Time":                         "t",
	"v1.MicroTime":                    "u",
	"v1.Duration":                     "n",
	"resource.Quantity":               "q",
	"intstr.IntOrString":              "x",
	"v1.FieldsV1":                     "f",
	"runtime.RawExtension":            "r",
	"v1.JSON":                         "r",
	"v1.JSONSchemaPropsOrBool":        "B",
	"v1.JSONSchemaPropsOrArray":       "A",
	"v1.JSONSchemaPropsOrStringArray": "S",
}

// isList reports whether a list is a message with the items in field 1.
func isList(of reflect.Type) bool {
	_, message := reflect.New(of).Interface().(interface{ Marshal() ([]byte, error) })
	return of.Kind() == reflect.Slice && message
}

// letter returns the letter of a value.
func letter(of reflect.Type) string {
	if found := letterOf[of.String()]; found != "" {
		return found
	}
	switch of.Kind() {
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	case reflect.Int32:
		return "i"
	case reflect.Int64:
		return "l"
	case reflect.Float64:
		return "d"
	case reflect.Struct:
		if modelName(of) == "" {
			must(fmt.Errorf("%s has no name", of))
		}
		return "m"
	case reflect.Slice:
		if isList(of) && of.Elem().Kind() == reflect.String {
			return "e"
		}
		if of.Elem().Kind() == reflect.Uint8 {
			return "y"
		}
	}
	must(fmt.Errorf("%s has no letter", of))
	return ""
}

// kindOf returns the kind that "apps/v1,Deployment" names.
func kindOf(text string) schema.GroupVersionKind {
	version, kind, _ := strings.Cut(text, ",")
	return schema.FromAPIVersionAndKind(version, kind)
}
