package main

import (
	"unicode/utf16"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

func create(descriptor protoreflect.MessageDescriptor) proto.Message {
	found, err := protoregistry.GlobalTypes.FindMessageByName(descriptor.FullName())
	if err != nil {
		panic(err)
	}
	return found.New().Interface()
}

// textOf is a text of code units; one without a partner becomes bytes that are no UTF-8.
func textOf(units []uint16) string {
	var text []byte
	for i := 0; i < len(units); i++ {
		unit := rune(units[i])
		if i+1 < len(units) {
			if pair := utf16.DecodeRune(unit, rune(units[i+1])); pair != utf8.RuneError {
				text = utf8.AppendRune(text, pair)
				i++
				continue
			}
		}
		if utf16.IsSurrogate(unit) {
			text = append(text, 0xe0|byte(unit>>12), 0x80|byte(unit>>6)&0x3f, 0x80|byte(unit)&0x3f)
		} else {
			text = utf8.AppendRune(text, unit)
		}
	}
	return string(text)
}

func responded[R proto.Message](reply R, err error) (answer, error) {
	if err != nil {
		return nil, err
	}
	return answer{"response": written(reply)}, nil
}

func read(encoded []byte, into proto.Message) {
	if err := proto.Unmarshal(encoded, into); err != nil {
		panic(err)
	}
}

func written(message proto.Message) []byte {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if err != nil {
		panic(err)
	}
	if encoded == nil {
		encoded = []byte{}
	}
	return encoded
}

func encoded[M proto.Message](messages []M) [][]byte {
	all := [][]byte{}
	for _, message := range messages {
		all = append(all, written(message))
	}
	return all
}

func decoded[T any, M interface {
	*T
	proto.Message
}](all [][]byte) []M {
	var messages []M
	for _, encoded := range all {
		message := M(new(T))
		read(encoded, message)
		messages = append(messages, message)
	}
	return messages
}
