package contextengine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// FormatError is JSON that is not of the format it should be.
type FormatError struct {
	// Path names the place.
	Path string
	// Problem says what would be right there.
	Problem string
}

func (e *FormatError) Error() string { return fmt.Sprintf("contextengine: %s: %s", e.Path, e.Problem) }

// object is a JSON object whose members keep their order and their numbers. Values: object, []any, string, json.Number, bool,
// nil.
type object []member

type member struct {
	key   string
	value any
}

// parseJSON reads one JSON text.
func parseJSON(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	value, err := nextValue(decoder)
	if err != nil {
		return nil, &FormatError{"$", "not JSON: " + err.Error()}
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, &FormatError{"$", "something follows the JSON value"}
	}
	return value, nil
}

func nextValue(decoder *json.Decoder) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		found := object{}
		for decoder.More() {
			key, err := decoder.Token()
			if err != nil {
				return nil, err
			}
			value, err := nextValue(decoder)
			if err != nil {
				return nil, err
			}
			found = append(found, member{key.(string), value})
		}
		_, err = decoder.Token()
		return found, err
	case json.Delim('['):
		found := []any{}
		for decoder.More() {
			value, err := nextValue(decoder)
			if err != nil {
				return nil, err
			}
			found = append(found, value)
		}
		_, err = decoder.Token()
		return found, err
	}
	return token, nil
}

// compact writes a value as compact JSON; characters beyond ASCII stay as they are.
func compact(value any) []byte {
	var out bytes.Buffer
	writeJSON(&out, value)
	return out.Bytes()
}

func writeJSON(out *bytes.Buffer, value any) {
	switch value := value.(type) {
	case object:
		out.WriteByte('{')
		for i, member := range value {
			if i > 0 {
				out.WriteByte(',')
			}
			writeText(out, member.key)
			out.WriteByte(':')
			writeJSON(out, member.value)
		}
		out.WriteByte('}')
	case []any:
		out.WriteByte('[')
		for i, element := range value {
			if i > 0 {
				out.WriteByte(',')
			}
			writeJSON(out, element)
		}
		out.WriteByte(']')
	case string:
		writeText(out, value)
	case json.Number:
		out.WriteString(value.String())
	case json.RawMessage:
		out.Write(value)
	case bool:
		fmt.Fprintf(out, "%t", value)
	default:
		out.WriteString("null")
	}
}

var escapes = strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\b", `\b`, "\f", `\f`)

func writeText(out *bytes.Buffer, text string) {
	out.WriteByte('"')
	for _, char := range escapes.Replace(text) {
		if char < 0x20 {
			fmt.Fprintf(out, `\u%04x`, char)
		} else {
			out.WriteRune(char)
		}
	}
	out.WriteByte('"')
}

// node is a JSON object and where it stands.
type node struct {
	value object
	path  string
}

func asNode(text []byte, path string) (node, error) {
	value, err := parseJSON(text)
	if err != nil {
		return node{}, err
	}
	found, ok := value.(object)
	if !ok {
		return node{}, &FormatError{path, "an object is needed"}
	}
	return node{found, path}, nil
}

func (n node) get(key string) any {
	for i := len(n.value) - 1; i >= 0; i-- {
		if n.value[i].key == key {
			return n.value[i].value
		}
	}
	return nil
}

func (n node) wrong(key, wanted string) error { return &FormatError{n.path + "." + key, wanted} }

// text is a string; empty where it is absent or null. Errors are left in err.
func (n node) text(key string, err *error) string {
	value := n.get(key)
	text, ok := value.(string)
	if !ok && value != nil && *err == nil {
		*err = n.wrong(key, "a string is needed")
	}
	return text
}

// required is a string that is not empty.
func (n node) required(key string, err *error) string {
	text := n.text(key, err)
	if text == "" && *err == nil {
		*err = n.wrong(key, "a string is needed")
	}
	return text
}

// child is an object; nil where it is absent or null.
func (n node) child(key string, err *error) *node {
	value := n.get(key)
	if value == nil {
		return nil
	}
	found, ok := value.(object)
	if !ok {
		if *err == nil {
			*err = n.wrong(key, "an object is needed")
		}
		return nil
	}
	return &node{found, n.path + "." + key}
}

// children is a list of objects; empty where it is absent or null.
func (n node) children(key string, err *error) []node {
	value := n.get(key)
	if value == nil {
		return nil
	}
	list, ok := value.([]any)
	var found []node
	for i, element := range list {
		one, isObject := element.(object)
		ok = ok && isObject
		found = append(found, node{one, fmt.Sprintf("%s.%s[%d]", n.path, key, i)})
	}
	if !ok {
		if *err == nil {
			*err = n.wrong(key, "a list of objects is needed")
		}
		return nil
	}
	return found
}

// integer is a whole number; nil where it is absent or null.
func (n node) integer(key string, err *error) *int64 {
	value := n.get(key)
	if value == nil {
		return nil
	}
	number, _ := value.(json.Number)
	found, failed := number.Int64()
	if failed != nil && *err == nil {
		*err = n.wrong(key, "a whole number of at most 64 bits is needed")
	}
	return &found
}

// rest is what else the object holds, as JSON. Nil: nothing.
func (n node) rest(known ...string) []byte {
	var others object
	for _, member := range n.value {
		if !contains(known, member.key) {
			others = append(others, member)
		}
	}
	if others == nil {
		return nil
	}
	return compact(others)
}

func contains(list []string, text string) bool {
	for _, one := range list {
		if one == text {
			return true
		}
	}
	return false
}

// more adds the members of a JSON object to an object.
func (o object) more(text []byte) object {
	if value, err := parseJSON(text); err == nil {
		if found, ok := value.(object); ok {
			return append(o, found...)
		}
	}
	return o
}

// with is the object with the members of a JSON object in place of its own of the same name.
func (o object) with(text []byte) object {
	for _, given := range (object{}).more(text) {
		found := false
		for i := range o {
			if o[i].key == given.key {
				o[i].value, found = given.value, true
			}
		}
		if !found {
			o = append(o, given)
		}
	}
	return o
}
