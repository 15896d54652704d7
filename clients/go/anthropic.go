package contextengine

import (
	"encoding/base64"
	"encoding/json"
	"strconv"

	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
)

// AnthropicMessages is the name of the format of Anthropic Messages in Message.native.
const AnthropicMessages = "anthropic.messages"

// FromAnthropic makes messages of those of a Messages request, each keeping its original in `native`, byte for byte. system, a
// text or a list of blocks as JSON, becomes a leading system message; nil: none. A user message of tool results alone is a
// tool message. They have no ids: see WithIDs. Errors are *FormatError.
func FromAnthropic(messages []json.RawMessage, system json.RawMessage) ([]*pb.Message, error) {
	var found []*pb.Message
	if system != nil {
		value, err := parseJSON(system)
		if err != nil {
			return nil, err
		}
		parts := anthropicBlocks(node{value: object{{"system", value}}}, "system", &err)
		if err != nil {
			return nil, err
		}
		native := &pb.Native{Format: AnthropicMessages, Json: system}
		found = append(found, &pb.Message{Role: pb.Role_ROLE_SYSTEM, Parts: parts, Native: native})
	}
	for i, raw := range messages {
		n, err := asNode(raw, "messages["+strconv.Itoa(i)+"]")
		if err != nil {
			return nil, err
		}
		message := fromAnthropic(n, &err)
		if err != nil {
			return nil, err
		}
		message.Native = &pb.Native{Format: AnthropicMessages, Json: raw}
		found = append(found, message)
	}
	return found, nil
}

func fromAnthropic(n node, err *error) *pb.Message {
	message := &pb.Message{Role: pb.Role_ROLE_USER, Parts: anthropicBlocks(n, "content", err)}
	switch n.required("role", err) {
	case "assistant":
		message.Role, message.Api = pb.Role_ROLE_ASSISTANT, "anthropic-messages"
		// A reply kept as the API gave it says more than a request may.
		message.Id, message.Model = n.text("id", err), n.text("model", err)
		message.StopReason = n.text("stop_reason", err)
		if usage := n.child("usage", err); usage != nil {
			message.Usage = anthropicUsage(*usage, err)
		}
	case "user":
		results := 0
		for _, part := range message.Parts {
			if part.GetToolResult() != nil {
				results++
			}
		}
		if results > 0 && results == len(message.Parts) {
			message.Role = pb.Role_ROLE_TOOL
		}
	case "system": // instructions that hold from there on stand among the messages
		message.Role = pb.Role_ROLE_SYSTEM
	default:
		if *err == nil {
			*err = n.wrong("role", "user, assistant or system is needed")
		}
	}
	return message
}

func anthropicBlocks(n node, key string, err *error) []*pb.Part {
	switch content := n.get(key).(type) {
	case string:
		return []*pb.Part{Text(content)}
	case []any:
		var parts []*pb.Part
		for _, block := range n.children(key, err) {
			parts = append(parts, anthropicBlock(block, err))
		}
		return parts
	}
	if *err == nil {
		*err = n.wrong(key, "a string or a list of blocks is needed")
	}
	return nil
}

func anthropicBlock(n node, err *error) *pb.Part {
	part := &pb.Part{}
	kind := n.required("type", err)
	known := []string{"type"}
	switch {
	case kind == "text":
		part.Kind = &pb.Part_Text{Text: &pb.TextPart{Text: n.text("text", err)}}
		known = append(known, "text")
	case kind == "thinking":
		part.Kind = &pb.Part_Reasoning{Reasoning: &pb.ReasoningPart{
			Text: n.text("thinking", err), Signature: []byte(n.text("signature", err)),
		}}
		known = append(known, "thinking", "signature")
	case kind == "redacted_thinking":
		data := []byte(n.required("data", err))
		part.Kind = &pb.Part_Reasoning{Reasoning: &pb.ReasoningPart{RedactedData: data}}
		known = append(known, "data")
	case kind == "tool_use":
		input := n.get("input")
		if input == nil {
			input = object{}
		}
		call := ToolCall(n.required("id", err), n.required("name", err), compact(input))
		part.Kind = &pb.Part_ToolCall{ToolCall: call}
		known = append(known, "id", "name", "input")
	case kind == "tool_result":
		result := &pb.ToolResultPart{CallId: n.required("tool_use_id", err), IsError: n.get("is_error") == true}
		if n.get("content") != nil {
			result.Parts = anthropicBlocks(n, "content", err)
		}
		part.Kind = &pb.Part_ToolResult{ToolResult: result}
		known = append(known, "tool_use_id", "content", "is_error")
	case kind == "image" && anthropicSource(n, err) != nil:
		source := anthropicSource(n, err)
		image := &pb.ImagePart{MimeType: source.mime, Source: &pb.ImagePart_Uri{Uri: source.uri}}
		if source.isData {
			image.Source = &pb.ImagePart_Data{Data: source.data}
		}
		part.Kind = &pb.Part_Image{Image: image}
		known = append(known, "source")
	case kind == "document" && anthropicSource(n, err) != nil:
		source := anthropicSource(n, err)
		file := &pb.FilePart{Name: n.text("title", err), MimeType: source.mime, Source: &pb.FilePart_Uri{Uri: source.uri}}
		if source.isData {
			file.Source = &pb.FilePart_Data{Data: source.data}
		}
		part.Kind = &pb.Part_File{File: file}
		known = append(known, "source", "title")
	default:
		return opaque(AnthropicMessages, kind, compact(n.value))
	}
	part.ProviderMetadataJson = n.rest(known...)
	return part
}

type source struct {
	mime, uri string
	data      []byte
	isData    bool
}

// anthropicSource is where a picture or document is. Nil: in no way that is known here.
func anthropicSource(n node, err *error) *source {
	var ignored error
	given := n.child("source", &ignored)
	if given == nil {
		return nil
	}
	found := &source{mime: given.text("media_type", err)}
	switch given.text("type", &ignored) {
	case "base64":
		data, bad := base64.StdEncoding.DecodeString(given.text("data", err))
		if bad != nil && *err == nil {
			*err = given.wrong("data", "base64 is needed")
		}
		found.data, found.isData = data, true
	case "text":
		found.data, found.isData = []byte(given.text("data", err)), true
	case "url":
		found.uri = given.required("url", err)
	case "file":
		found.uri = given.required("file_id", err)
	default:
		return nil
	}
	return found
}

func anthropicUsage(n node, err *error) *pb.Usage {
	usage := &pb.Usage{
		InputTokens: n.integer("input_tokens", err), OutputTokens: n.integer("output_tokens", err),
		CacheReadTokens:  n.integer("cache_read_input_tokens", err),
		CacheWriteTokens: n.integer("cache_creation_input_tokens", err),
	}
	if written := n.child("cache_creation", err); written != nil {
		usage.CacheWrite_1HTokens = written.integer("ephemeral_1h_input_tokens", err)
	}
	return usage
}
