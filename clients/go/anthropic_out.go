package contextengine

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
)

// AnthropicRequest is the part of a Messages request that says the conversation.
type AnthropicRequest struct {
	System   []json.RawMessage `json:"system,omitempty"`
	Messages []json.RawMessage `json:"messages"`
}

// ToAnthropic is the conversation as a Messages request says it. What came from Anthropic comes back as it was. Leading
// instructions become System, later ones a user's text, unless they came as such and may stand where they do. Tool results are a
// user's; those that follow each other share a message, as the API wants the results of parallel calls, unless they came from
// Anthropic apart. What the format cannot say is left out, and a message of nothing else with it.
func ToAnthropic(messages []*pb.Message) AnthropicRequest {
	var system []json.RawMessage
	var turns []anthropicTurn
	answers, made := false, true
	for _, message := range messages {
		among := cameAmong(message)
		instructs := message.GetRole() == pb.Role_ROLE_SYSTEM || message.GetRole() == pb.Role_ROLE_DEVELOPER
		content := toAnthropicContent(message)
		blocks, isList := content.([]any)
		if content == nil || content == "" || isList && len(blocks) == 0 {
			continue
		}
		before, own := answers, made
		answers, made = hasResults(message), message.GetNative().GetFormat() != AnthropicMessages
		switch {
		case instructs && !among && len(turns) == 0:
			for _, block := range blocks {
				system = append(system, compact(block))
			}
		case before && answers && (own || made):
			last := &turns[len(turns)-1]
			earlier, _ := last.content.([]any)
			last.content = resultsFirst(append(slices.Clone(earlier), blocks...))
			made = true
		default:
			role := "user"
			if message.GetRole() == pb.Role_ROLE_ASSISTANT {
				role = "assistant"
			} else if instructs && among {
				role = "system"
			}
			turns = append(turns, anthropicTurn{role, content})
		}
	}
	return AnthropicRequest{System: system, Messages: placed(turns)}
}

// anthropicTurn is a message before it is written.
type anthropicTurn struct {
	role    string
	content any
}

// placed writes messages. A system message is the user's where the API does not take it: it may stand behind the user's, and
// before the model's or last (Anthropic, mid-conversation system messages, Limitations).
func placed(turns []anthropicTurn) []json.RawMessage {
	written := make([]json.RawMessage, 0, len(turns))
	before := ""
	for at, turn := range turns {
		last := at+1 == len(turns)
		if turn.role == "system" && (before != "user" || !last && turns[at+1].role != "assistant") {
			turn.role = "user"
		}
		before = turn.role
		written = append(written, compact(object{{"role", turn.role}, {"content", turn.content}}))
	}
	return written
}

// resultsFirst are the blocks, results before all others, as the API wants them (Anthropic, Handle tool calls).
func resultsFirst(blocks []any) []any {
	slices.SortStableFunc(blocks, func(one, other any) int { return afterResults(one) - afterResults(other) })
	return blocks
}

func afterResults(block any) int {
	if members, is := block.(object); is && (node{value: members}).get("type") == "tool_result" {
		return 0
	}
	return 1
}

// hasResults says whether a message answers calls. A model's own may hold what its provider's tools found.
func hasResults(message *pb.Message) bool {
	switch message.GetRole() {
	case pb.Role_ROLE_ASSISTANT, pb.Role_ROLE_SYSTEM, pb.Role_ROLE_DEVELOPER:
		return false
	}
	return slices.ContainsFunc(message.GetParts(), func(part *pb.Part) bool { return part.GetToolResult() != nil })
}

// cameAmong says whether instructions came as a message of their own, and not before all messages.
func cameAmong(message *pb.Message) bool {
	if message.GetNative().GetFormat() != AnthropicMessages {
		return false
	}
	value, err := parseJSON(message.Native.Json)
	_, is := value.(object)
	return is && err == nil
}

func toAnthropicContent(message *pb.Message) any {
	if message.GetNative().GetFormat() == AnthropicMessages {
		value, err := parseJSON(message.Native.Json)
		switch value := value.(type) {
		case string:
			return []any{object{{"type", "text"}, {"text", value}}}
		case []any:
			// The blocks of instructions; else the messages that a reply came in.
			if role := message.GetRole(); role == pb.Role_ROLE_SYSTEM || role == pb.Role_ROLE_DEVELOPER {
				return value
			}
		case object:
			if err == nil {
				return node{value: value}.get("content")
			}
		}
	}
	return toAnthropicBlocks(message.GetParts())
}

func toAnthropicBlocks(parts []*pb.Part) []any {
	var blocks []any
	for _, part := range parts {
		if block := toAnthropicBlock(part); block != nil {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

func toAnthropicBlock(part *pb.Part) any {
	var block object
	switch kind := part.GetKind().(type) {
	case *pb.Part_Text:
		if kind.Text.GetText() == "" { // the API refuses empty texts
			return nil
		}
		block = object{{"type", "text"}, {"text", kind.Text.Text}}
	case *pb.Part_Reasoning:
		reasoning := kind.Reasoning
		switch {
		case len(reasoning.GetRedactedData()) > 0:
			block = object{{"type", "redacted_thinking"}, {"data", valid(reasoning.RedactedData)}}
		case len(reasoning.GetSignature()) > 0:
			block = object{{"type", "thinking"}, {"thinking", reasoning.Text}, {"signature", valid(reasoning.Signature)}}
		default:
			return nil
		}
	case *pb.Part_ToolCall:
		block = object{
			{"type", "tool_use"}, {"id", kind.ToolCall.GetCallId()}, {"name", kind.ToolCall.GetName()},
			{"input", toAnthropicInput(kind.ToolCall.GetArgumentsJson())},
		}
	case *pb.Part_ToolResult:
		block = object{{"type", "tool_result"}, {"tool_use_id", kind.ToolResult.GetCallId()}}
		if content := toAnthropicBlocks(kind.ToolResult.GetParts()); content != nil {
			block = append(block, member{"content", content})
		}
		if kind.ToolResult.GetIsError() {
			block = append(block, member{"is_error", true})
		}
	case *pb.Part_Image:
		_, isData := kind.Image.Source.(*pb.ImagePart_Data)
		where := toSource(isData, kind.Image.MimeType, kind.Image.GetData(), kind.Image.GetUri())
		block = object{{"type", "image"}, {"source", where}}
	case *pb.Part_File:
		_, isData := kind.File.Source.(*pb.FilePart_Data)
		where := toSource(isData, kind.File.MimeType, kind.File.GetData(), kind.File.GetUri())
		block = object{{"type", "document"}, {"source", where}}
		if kind.File.Name != "" {
			block = append(block, member{"title", kind.File.Name})
		}
	case *pb.Part_Opaque:
		if kind.Opaque.Format == AnthropicMessages {
			return json.RawMessage(kind.Opaque.Json)
		}
		return nil
	default:
		return nil
	}
	return block.more(part.ProviderMetadataJson)
}

// toAnthropicInput are the arguments as the object that the API insists on; what is none stands under `arguments`.
func toAnthropicInput(arguments []byte) object {
	if len(arguments) == 0 {
		return object{}
	}
	value, err := parseJSON(arguments)
	if err != nil {
		value = valid(arguments)
	}
	if found, ok := value.(object); ok {
		return found
	}
	return object{{"arguments", value}}
}

func toSource(isData bool, mime string, data []byte, uri string) object {
	if !isData {
		return object{{"type", "url"}, {"url", uri}}
	}
	if mime == "text/plain" {
		return object{{"type", "text"}, {"media_type", mime}, {"data", valid(data)}}
	}
	return object{{"type", "base64"}, {"media_type", mime}, {"data", base64.StdEncoding.EncodeToString(data)}}
}

func valid(text []byte) string { return strings.ToValidUTF8(string(text), "\ufffd") }
