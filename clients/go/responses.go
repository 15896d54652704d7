package contextengine

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
)

// OpenAIResponses is the name of the format of OpenAI Responses in Message.native.
const OpenAIResponses = "openai.responses"

var responsesRoles = map[string]pb.Role{
	"user": pb.Role_ROLE_USER, "assistant": pb.Role_ROLE_ASSISTANT,
	"system": pb.Role_ROLE_SYSTEM, "developer": pb.Role_ROLE_DEVELOPER,
}

// FromResponses makes messages of the input items of a Responses request. Items that one reply of the model is made of
// (reasoning, then its text, then its calls) become one; its `native` is the list of them, each byte for byte. They have no
// ids: see WithIDs. Errors are *FormatError.
func FromResponses(items []json.RawMessage) ([]*pb.Message, error) {
	var found []*pb.Message
	var natives [][][]byte
	for i, raw := range items {
		n, err := asNode(raw, "input["+strconv.Itoa(i)+"]")
		if err != nil {
			return nil, err
		}
		message := fromResponses(n, &err)
		if err != nil {
			return nil, err
		}
		last := len(found) - 1
		if last >= 0 && goesOn(found[last], message) {
			found[last].Parts = append(found[last].Parts, message.Parts...)
			natives[last] = append(natives[last], raw)
		} else {
			found, natives = append(found, message), append(natives, [][]byte{raw})
		}
	}
	for i, message := range found {
		native := natives[i][0]
		if len(natives[i]) > 1 {
			native = append(append([]byte("["), bytes.Join(natives[i], []byte(","))...), ']')
		}
		message.Native = &pb.Native{Format: OpenAIResponses, Json: native}
	}
	return found, nil
}

// goesOn says whether an item belongs to the reply that has begun: calls go on with anything but an answer, text with
// reasoning only.
func goesOn(before, message *pb.Message) bool {
	assistant := pb.Role_ROLE_ASSISTANT
	if before.Role != assistant || message.Role != assistant || len(message.Parts) == 0 || len(before.Parts) == 0 {
		return false
	}
	for _, part := range before.Parts {
		if part.GetReasoning() == nil {
			return message.Parts[0].GetToolCall() != nil
		}
	}
	return true
}

func fromResponses(n node, err *error) *pb.Message {
	kind := n.text("type", err)
	assistant := func(part *pb.Part) *pb.Message {
		return &pb.Message{Role: pb.Role_ROLE_ASSISTANT, Parts: []*pb.Part{part}}
	}
	switch kind {
	case "", "message":
		role, known := responsesRoles[n.required("role", err)]
		if !known && *err == nil {
			*err = n.wrong("role", "one of user, assistant, system, developer is needed")
		}
		return &pb.Message{Role: role, Parts: responsesContent(n, "content", err)}
	case "reasoning":
		return assistant(responsesReasoning(n, err))
	case "function_call", "custom_tool_call":
		return assistant(responsesCall(n, kind == "custom_tool_call", err))
	case "function_call_output", "custom_tool_call_output":
		result := &pb.ToolResultPart{CallId: n.required("call_id", err), Parts: responsesContent(n, "output", err)}
		part := &pb.Part{Kind: &pb.Part_ToolResult{ToolResult: result}}
		part.ProviderMetadataJson = n.rest("type", "call_id", "output", "id", "status")
		return &pb.Message{Role: pb.Role_ROLE_TOOL, Parts: []*pb.Part{part}}
	}
	return &pb.Message{Role: whose(n, kind, err), Parts: []*pb.Part{opaque(OpenAIResponses, kind, compact(n.value))}}
}

// whose says who an item of a kind that is not known here is from: who it says, of what a host sets the developer, else the model.
func whose(n node, kind string, err *error) pb.Role {
	if role, known := responsesRoles[n.text("role", err)]; known {
		return role
	}
	if kind == "configuration_update" {
		return pb.Role_ROLE_DEVELOPER
	}
	return pb.Role_ROLE_ASSISTANT
}

func responsesReasoning(n node, err *error) *pb.Part {
	var texts []string
	for _, text := range n.children("summary", err) {
		texts = append(texts, text.text("text", err))
	}
	known := []string{"type", "id", "encrypted_content"}
	if len(texts) < 2 { // what several texts were joined of is kept beside them
		known = append(known, "summary")
	}
	thought := &pb.ReasoningPart{
		Text:         strings.Join(texts, "\n\n"),
		RedactedData: []byte(n.text("encrypted_content", err)),
		ItemId:       n.text("id", err),
	}
	return &pb.Part{Kind: &pb.Part_Reasoning{Reasoning: thought}, ProviderMetadataJson: n.rest(known...)}
}

// responsesCall is a tool call. A custom tool's input is text of any kind, and stands where arguments stand.
func responsesCall(n node, custom bool, err *error) *pb.Part {
	given := "arguments"
	if custom {
		given = "input"
	}
	call := &pb.ToolCallPart{
		CallId:        n.required("call_id", err),
		Name:          n.required("name", err),
		ArgumentsJson: []byte(n.text(given, err)),
		ItemId:        n.text("id", err),
		Namespace:     n.text("namespace", err),
	}
	known := []string{"call_id", "name", given, "id", "namespace"}
	if !custom {
		known = append(known, "type")
	}
	return &pb.Part{Kind: &pb.Part_ToolCall{ToolCall: call}, ProviderMetadataJson: n.rest(known...)}
}

func responsesContent(n node, key string, err *error) []*pb.Part {
	switch given := n.get(key).(type) {
	case string:
		return []*pb.Part{Text(given)}
	case []any:
		var parts []*pb.Part
		for _, piece := range n.children(key, err) {
			parts = append(parts, responsesPiece(piece, err))
		}
		return parts
	}
	if *err == nil {
		*err = n.wrong(key, "a string or a list of parts is needed")
	}
	return nil
}

func responsesPiece(n node, err *error) *pb.Part {
	kind := n.required("type", err)
	switch kind {
	case "input_text", "output_text":
		part := Text(n.text("text", err))
		part.ProviderMetadataJson = n.rest("type", "text")
		return part
	case "input_image":
		uri, mime, data := responsesMedium(n, "image_url", err)
		image := &pb.ImagePart{Source: &pb.ImagePart_Uri{Uri: uri}, MimeType: mime, Detail: n.text("detail", err)}
		if data != nil {
			image.Source = &pb.ImagePart_Data{Data: data}
		}
		rest := n.rest("type", "image_url", "file_id", "detail")
		return &pb.Part{Kind: &pb.Part_Image{Image: image}, ProviderMetadataJson: rest}
	case "input_file":
		key := "file_url"
		if n.text("file_data", err) != "" {
			key = "file_data"
		}
		uri, mime, data := responsesMedium(n, key, err)
		file := &pb.FilePart{Source: &pb.FilePart_Uri{Uri: uri}, MimeType: mime, Name: n.text("filename", err)}
		if data != nil {
			file.Source = &pb.FilePart_Data{Data: data}
		}
		rest := n.rest("type", "file_data", "file_url", "file_id", "filename")
		return &pb.Part{Kind: &pb.Part_File{File: file}, ProviderMetadataJson: rest}
	}
	return opaque(OpenAIResponses, kind, compact(n.value))
}

// responsesMedium is a medium by its data URL, its address, or its id with the provider.
func responsesMedium(n node, key string, err *error) (uri, mime string, data []byte) {
	url := n.text(key, err)
	mime, data, ok := dataURL(url)
	if ok {
		return "", mime, append([]byte{}, data...)
	}
	if mime != "" && *err == nil {
		*err = n.wrong(key, "base64 is needed")
	}
	if url == "" {
		url = n.text("file_id", err)
	}
	return url, "", nil
}
