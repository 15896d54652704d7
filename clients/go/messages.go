package contextengine

import (
	"strings"

	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
)

// User is a message of the user, with a new id.
func User(text string) *pb.Message { return message(pb.Role_ROLE_USER, Text(text)) }

// System is instructions of the system, with a new id. Where they lead the session, every assembly shows them verbatim.
func System(text string) *pb.Message { return message(pb.Role_ROLE_SYSTEM, Text(text)) }

// Assistant is a reply of the model, with a new id: its text, where there is any, and its calls.
func Assistant(text string, calls ...*pb.ToolCallPart) *pb.Message {
	reply := message(pb.Role_ROLE_ASSISTANT)
	if text != "" {
		reply.Parts = append(reply.Parts, Text(text))
	}
	for _, call := range calls {
		reply.Parts = append(reply.Parts, &pb.Part{Kind: &pb.Part_ToolCall{ToolCall: call}})
	}
	return reply
}

// ToolCall is a call for Assistant. arguments: JSON as the model wrote it.
func ToolCall(callID, name string, arguments []byte) *pb.ToolCallPart {
	return &pb.ToolCallPart{CallId: callID, Name: name, ArgumentsJson: arguments}
}

// ToolResult is a tool's answer to a call, with a new id.
func ToolResult(callID, text string) *pb.Message {
	result := &pb.ToolResultPart{CallId: callID, Parts: []*pb.Part{Text(text)}}
	return message(pb.Role_ROLE_TOOL, &pb.Part{Kind: &pb.Part_ToolResult{ToolResult: result}})
}

// Text is a part of plain text.
func Text(text string) *pb.Part { return &pb.Part{Kind: &pb.Part_Text{Text: &pb.TextPart{Text: text}}} }

// TextOf is the text of a message: its text parts and those of its tool results, joined by line ends. No reasoning.
func TextOf(message *pb.Message) string { return strings.Join(texts(message.GetParts()), "\n") }

func texts(parts []*pb.Part) []string {
	var found []string
	for _, part := range parts {
		switch kind := part.GetKind().(type) {
		case *pb.Part_Text:
			found = append(found, kind.Text.GetText())
		case *pb.Part_ToolResult:
			found = append(found, texts(kind.ToolResult.GetParts())...)
		}
	}
	return found
}

func message(role pb.Role, parts ...*pb.Part) *pb.Message {
	return &pb.Message{Id: NewID(), Role: role, Parts: parts}
}
