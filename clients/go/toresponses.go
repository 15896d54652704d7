package contextengine

import (
	"encoding/json"
	"strings"

	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
)

// ToResponses are the input items of a Responses request. What came from Responses comes back as it was; what the format cannot
// say is left out. A message becomes as many items as it has calls, results and stretches of text. Reasoning is left out where
// it has not the id of an item of OpenAI's: nobody else's is taken.
func ToResponses(messages []*pb.Message) []json.RawMessage {
	items := []json.RawMessage{}
	custom := map[string]bool{} // calls so far whose arguments are no JSON
	for _, message := range messages {
		if message.GetNative().GetFormat() == OpenAIResponses {
			items = append(items, nativeItems(message.Native.Json, custom)...)
			continue
		}
		for _, item := range toResponses(message, custom) {
			items = append(items, compact(item))
		}
	}
	return items
}

// nativeItems are the items that a message was made of, and notes the custom tools that they call.
func nativeItems(native []byte, custom map[string]bool) []json.RawMessage {
	items := []json.RawMessage{native}
	if strings.HasPrefix(strings.TrimLeft(string(native), " \t\r\n"), "[") {
		items = nil
		if json.Unmarshal(native, &items) != nil {
			return []json.RawMessage{native}
		}
	}
	for _, item := range items {
		if n, err := asNode(item, "native"); err == nil && n.get("type") == "custom_tool_call" {
			custom[n.text("call_id", &err)] = true
		}
	}
	return items
}

func toResponses(message *pb.Message, custom map[string]bool) []object {
	role := "user" // all other roles are a user's to the model
	for name, one := range responsesRoles {
		if one == message.GetRole() {
			role = name
		}
	}
	var items []object
	var stretch []any
	said := func() {
		if stretch != nil {
			items = append(items, object{{"type", "message"}, {"role", role}, {"content", stretch}})
			stretch = nil
		}
	}
	for _, part := range message.GetParts() {
		if item := toResponsesItem(part, custom); item != nil {
			said()
			items = append(items, item)
		} else if piece := toResponsesPiece(part, role); piece != nil {
			stretch = append(stretch, piece)
		}
	}
	said()
	return items
}

// toResponsesItem is the item that a part is by itself. Nil: it belongs into a message, or nowhere.
func toResponsesItem(part *pb.Part, custom map[string]bool) object {
	switch kind := part.GetKind().(type) {
	case *pb.Part_Reasoning:
		thought := kind.Reasoning
		if thought.GetItemId() == "" {
			return nil
		}
		summary := []any{}
		if thought.Text != "" {
			summary = append(summary, object{{"type", "summary_text"}, {"text", thought.Text}})
		}
		item := object{{"type", "reasoning"}, {"id", thought.ItemId}, {"summary", summary}}
		if len(thought.RedactedData) > 0 {
			item = append(item, member{"encrypted_content", valid(thought.RedactedData)})
		}
		return item.with(part.ProviderMetadataJson)
	case *pb.Part_ToolCall:
		return toResponsesCall(kind.ToolCall, part.ProviderMetadataJson, custom)
	case *pb.Part_ToolResult:
		name := "function_call_output"
		if custom[kind.ToolResult.GetCallId()] {
			name = "custom_tool_call_output"
		}
		output := toResponsesOutput(kind.ToolResult.GetParts())
		item := object{{"type", name}, {"call_id", kind.ToolResult.GetCallId()}, {"output", output}}
		return item.with(part.ProviderMetadataJson)
	case *pb.Part_Opaque:
		if kind.Opaque.GetFormat() == OpenAIResponses && !isResponsesContent(kind.Opaque.Type) {
			return object{}.with(kind.Opaque.Json)
		}
	}
	return nil
}

func toResponsesCall(call *pb.ToolCallPart, metadata []byte, custom map[string]bool) object {
	kind := (node{value: object{}.more(metadata)}).get("type")
	isCustom := kind == "custom_tool_call" || kind == "custom"
	arguments := valid(call.GetArgumentsJson())
	item := object{{"type", "function_call"}, {"call_id", call.GetCallId()}, {"name", call.GetName()}}
	if isCustom {
		custom[call.GetCallId()] = true
		item = append(item, member{"input", arguments})
	} else {
		if arguments == "" {
			arguments = "{}"
		}
		item = append(item, member{"arguments", arguments})
	}
	if call.GetItemId() != "" {
		item = append(item, member{"id", call.ItemId})
	}
	if call.GetNamespace() != "" {
		item = append(item, member{"namespace", call.Namespace})
	}
	item = item.with(metadata)
	item[0].value = "function_call"
	if isCustom {
		item[0].value = "custom_tool_call"
	}
	return item
}

// isResponsesContent says whether an opaque part stands within a message: a refusal does.
func isResponsesContent(kind string) bool { return kind == "refusal" || kind == "input_audio" }

// toResponsesOutput is a result as one text, or as a list where it holds more.
func toResponsesOutput(parts []*pb.Part) any {
	pieces := []any{}
	for _, part := range parts {
		if piece := toResponsesPiece(part, "user"); piece != nil {
			pieces = append(pieces, piece)
		}
	}
	if len(pieces) == 0 {
		return ""
	}
	if only, ok := pieces[0].(object); ok && len(pieces) == 1 && len(only) == 2 && only[1].key == "text" {
		return only[1].value
	}
	return pieces
}

// toResponsesPiece is a part within a message. Nil: the format has no place for it.
func toResponsesPiece(part *pb.Part, role string) any {
	switch kind := part.GetKind().(type) {
	case *pb.Part_Text:
		name := "input_text"
		if role == "assistant" {
			name = "output_text"
		}
		return object{{"type", name}, {"text", kind.Text.GetText()}}.with(part.ProviderMetadataJson)
	case *pb.Part_Image:
		url := kind.Image.GetUri()
		if data, ok := kind.Image.Source.(*pb.ImagePart_Data); ok {
			url = toDataURL(kind.Image.MimeType, data.Data)
		}
		piece := object{{"type", "input_image"}, {placeOf(url, "image_url"), url}}
		if kind.Image.Detail != "" {
			piece = append(piece, member{"detail", kind.Image.Detail})
		}
		return piece.with(part.ProviderMetadataJson)
	case *pb.Part_File:
		url, key := kind.File.GetUri(), "file_url"
		if data, ok := kind.File.Source.(*pb.FilePart_Data); ok {
			url, key = toDataURL(kind.File.MimeType, data.Data), "file_data"
		}
		piece := object{{"type", "input_file"}, {placeOf(url, key), url}}
		if kind.File.Name != "" {
			piece = append(piece, member{"filename", kind.File.Name})
		}
		return piece.with(part.ProviderMetadataJson)
	case *pb.Part_Opaque:
		if kind.Opaque.GetFormat() == OpenAIResponses {
			return json.RawMessage(kind.Opaque.Json)
		}
	}
	return nil
}

// placeOf is where a medium's address stands: an id with the provider has a place of its own.
func placeOf(url, key string) string {
	if strings.Contains(url, "://") || strings.HasPrefix(url, "data:") {
		return key
	}
	return "file_id"
}
