package contextengine

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
)

// OpenAIChat is the name of the format of OpenAI Chat Completions in Message.native.
const OpenAIChat = "openai.chat"

var openAIRoles = map[string]pb.Role{
	"user": pb.Role_ROLE_USER, "assistant": pb.Role_ROLE_ASSISTANT, "tool": pb.Role_ROLE_TOOL,
	"system": pb.Role_ROLE_SYSTEM, "developer": pb.Role_ROLE_DEVELOPER,
}

// FromOpenAI makes messages of those of a Chat Completions request, each keeping its original in `native`, byte for byte. They
// have no ids: see WithIDs. Errors are *FormatError.
func FromOpenAI(messages []json.RawMessage) ([]*pb.Message, error) {
	found := make([]*pb.Message, len(messages))
	for i, raw := range messages {
		n, err := asNode(raw, "messages["+strconv.Itoa(i)+"]")
		if err != nil {
			return nil, err
		}
		if found[i] = fromOpenAI(n, &err); err != nil {
			return nil, err
		}
		found[i].Native = &pb.Native{Format: OpenAIChat, Json: raw}
	}
	return found, nil
}

func fromOpenAI(n node, err *error) *pb.Message {
	role, known := openAIRoles[n.required("role", err)]
	if !known && *err == nil {
		*err = n.wrong("role", "one of user, assistant, tool, system, developer is needed")
	}
	content := openAIContent(n, err)
	if role == pb.Role_ROLE_TOOL {
		result := &pb.ToolResultPart{CallId: n.required("tool_call_id", err), Name: n.text("name", err), Parts: content}
		return &pb.Message{Role: role, Parts: []*pb.Part{{Kind: &pb.Part_ToolResult{ToolResult: result}}}}
	}
	message := &pb.Message{Role: role, Name: n.text("name", err)}
	if reasoning := n.text("reasoning_content", err); reasoning != "" {
		part := &pb.ReasoningPart{Text: reasoning}
		message.Parts = append(message.Parts, &pb.Part{Kind: &pb.Part_Reasoning{Reasoning: part}})
	}
	message.Parts = append(message.Parts, content...)
	if refusal := n.text("refusal", err); refusal != "" {
		said := compact(object{{"type", "refusal"}, {"refusal", refusal}})
		message.Parts = append(message.Parts, opaque(OpenAIChat, "refusal", said))
	}
	for _, call := range n.children("tool_calls", err) {
		message.Parts = append(message.Parts, openAICall(call, err))
	}
	return message
}

func openAIContent(n node, err *error) []*pb.Part {
	if text, ok := n.get("content").(string); ok {
		return []*pb.Part{Text(text)}
	}
	var parts []*pb.Part
	for _, piece := range n.children("content", err) {
		parts = append(parts, openAIPart(piece, err))
	}
	return parts
}

func openAIPart(n node, err *error) *pb.Part {
	kind := n.required("type", err)
	image, file := n.child("image_url", err), n.child("file", err)
	switch {
	case kind == "text":
		part := Text(n.text("text", err))
		part.ProviderMetadataJson = n.rest("type", "text")
		return part
	case kind == "image_url" && image != nil:
		url := image.required("url", err)
		part := &pb.ImagePart{Detail: image.text("detail", err), Source: &pb.ImagePart_Uri{Uri: url}}
		if mime, data, ok := dataURL(url); ok {
			part.MimeType, part.Source = mime, &pb.ImagePart_Data{Data: data}
		}
		return &pb.Part{Kind: &pb.Part_Image{Image: part}, ProviderMetadataJson: n.rest("type", "image_url")}
	case kind == "file" && file != nil:
		part := &pb.FilePart{Name: file.text("filename", err), Source: &pb.FilePart_Uri{Uri: file.text("file_id", err)}}
		if mime, data, ok := dataURL(file.text("file_data", err)); ok {
			part.MimeType, part.Source = mime, &pb.FilePart_Data{Data: data}
		}
		return &pb.Part{Kind: &pb.Part_File{File: part}, ProviderMetadataJson: n.rest("type", "file")}
	}
	return opaque(OpenAIChat, kind, compact(n.value))
}

// openAICall is a tool call. A custom tool's input is text of any kind, and stands where arguments stand.
func openAICall(n node, err *error) *pb.Part {
	body, key := n.child("custom", err), "input"
	if body == nil {
		body, key = n.child("function", err), "arguments"
	}
	if body == nil {
		if *err == nil {
			*err = n.wrong("function", "an object is needed")
		}
		return nil
	}
	call := ToolCall(n.required("id", err), body.required("name", err), []byte("{}"))
	if text, ok := body.get(key).(string); ok {
		call.ArgumentsJson = []byte(text)
	} else if given := body.get(key); given != nil {
		call.ArgumentsJson = compact(given)
	}
	known := []string{"id", "function", "custom"}
	if kind := n.get("type"); kind == nil || kind == "function" {
		known = append(known, "type")
	}
	return &pb.Part{Kind: &pb.Part_ToolCall{ToolCall: call}, ProviderMetadataJson: n.rest(known...)}
}

// ToOpenAI are the messages of a Chat Completions request. What came from OpenAI comes back as it was; what the format cannot
// say is left out. A tool message with several results becomes several. What is said beside some of a step's results stands behind
// them all: the API wants them directly behind the calls.
func ToOpenAI(messages []*pb.Message) []json.RawMessage {
	var written, beside []json.RawMessage
	for _, message := range messages {
		if !hasResults(message) {
			written, beside = append(written, beside...), nil
		}
		if message.GetNative().GetFormat() == OpenAIChat {
			written = append(written, message.Native.Json)
			continue
		}
		var others []*pb.Part
		results := 0
		for _, part := range message.GetParts() {
			if result := part.GetToolResult(); result != nil {
				written = append(written, compact(toOpenAIResult(result)))
				results++
			} else {
				others = append(others, part)
			}
		}
		if len(others) > 0 || results == 0 {
			said := compact(toOpenAI(message, others))
			if hasResults(message) {
				beside = append(beside, said)
			} else {
				written = append(written, said)
			}
		}
	}
	return append(written, beside...)
}

func toOpenAIResult(result *pb.ToolResultPart) object {
	written := object{{"role", "tool"}, {"tool_call_id", result.GetCallId()}}
	if result.GetName() != "" {
		written = append(written, member{"name", result.Name})
	}
	content := toOpenAIContent(result.GetParts())
	if content == nil {
		content = ""
	}
	return append(written, member{"content", content})
}

func toOpenAI(message *pb.Message, parts []*pb.Part) object {
	role := "user" // roles of a harness's own are a user's to the model
	for name, one := range openAIRoles {
		if one == message.GetRole() {
			role = name
		}
	}
	written := object{{"role", role}}
	if message.GetName() != "" {
		written = append(written, member{"name", message.Name})
	}
	content := toOpenAIContent(parts)
	if content == nil && role != "assistant" {
		content = ""
	}
	written = append(written, member{"content", content})
	var calls []any
	for _, part := range parts {
		if isRefusal(part) {
			if n, err := asNode(part.GetOpaque().Json, "refusal"); err == nil {
				written = append(written, member{"refusal", n.get("refusal")})
			}
		}
		if call := part.GetToolCall(); call != nil {
			calls = append(calls, toOpenAICall(call, part.ProviderMetadataJson))
		}
	}
	if calls != nil {
		written = append(written, member{"tool_calls", calls})
	}
	return written
}

// toOpenAIContent is one plain text as a string, anything else as a list. Nil: nothing.
func toOpenAIContent(parts []*pb.Part) any {
	var pieces []any
	for _, part := range parts {
		if piece := toOpenAIPart(part); piece != nil {
			pieces = append(pieces, piece)
		}
	}
	if len(pieces) == 1 {
		if only, ok := pieces[0].(object); ok && len(only) == 2 && only[0].value == "text" {
			return only[1].value
		}
	}
	if pieces == nil {
		return nil
	}
	return pieces
}

func toOpenAIPart(part *pb.Part) any {
	switch kind := part.GetKind().(type) {
	case *pb.Part_Text:
		return object{{"type", "text"}, {"text", kind.Text.GetText()}}.more(part.ProviderMetadataJson)
	case *pb.Part_Image:
		url := kind.Image.GetUri()
		if data, ok := kind.Image.Source.(*pb.ImagePart_Data); ok {
			url = toDataURL(kind.Image.MimeType, data.Data)
		}
		image := object{{"url", url}}
		if kind.Image.Detail != "" {
			image = append(image, member{"detail", kind.Image.Detail})
		}
		return object{{"type", "image_url"}, {"image_url", image}}.more(part.ProviderMetadataJson)
	case *pb.Part_File:
		file := object{}
		if kind.File.Name != "" {
			file = append(file, member{"filename", kind.File.Name})
		}
		if data := kind.File.GetData(); len(data) > 0 {
			file = append(file, member{"file_data", toDataURL(kind.File.MimeType, data)})
		} else {
			file = append(file, member{"file_id", kind.File.GetUri()})
		}
		return object{{"type", "file"}, {"file", file}}.more(part.ProviderMetadataJson)
	case *pb.Part_Opaque:
		if kind.Opaque.Format == OpenAIChat && !isRefusal(part) {
			return json.RawMessage(kind.Opaque.Json)
		}
	}
	return nil
}

func toOpenAICall(call *pb.ToolCallPart, metadata []byte) object {
	arguments := strings.ToValidUTF8(string(call.GetArgumentsJson()), "\ufffd")
	body := object{{"name", call.GetName()}}
	more := object{}.more(metadata)
	if (node{value: more}).get("type") == "custom" {
		return append(object{{"id", call.GetCallId()}, {"custom", append(body, member{"input", arguments})}}, more...)
	}
	function := append(body, member{"arguments", arguments})
	return append(object{{"id", call.GetCallId()}, {"type", "function"}, {"function", function}}, more...)
}

func isRefusal(part *pb.Part) bool {
	return part.GetOpaque().GetFormat() == OpenAIChat && part.GetOpaque().GetType() == "refusal"
}

func opaque(format, kind string, text []byte) *pb.Part {
	return &pb.Part{Kind: &pb.Part_Opaque{Opaque: &pb.OpaquePart{Format: format, Type: kind, Json: text}}}
}

// dataURL are media type and bytes of a base64 data URL. False: it is another URL.
func dataURL(url string) (string, []byte, bool) {
	head, body, ok := strings.Cut(url, ",")
	if !ok || !strings.HasPrefix(head, "data:") || !strings.HasSuffix(head, ";base64") {
		return "", nil, false
	}
	data, err := base64.StdEncoding.DecodeString(body)
	return strings.TrimSuffix(strings.TrimPrefix(head, "data:"), ";base64"), data, err == nil
}

func toDataURL(mime string, data []byte) string {
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)
}
