package contextengine

import (
	"math"

	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
	"google.golang.org/protobuf/proto"
)

const (
	// messageTokens is more than any provider's frame of a message.
	messageTokens = 16
	// imageTokens is more than a picture costs.
	imageTokens = 2_000
	// The algebra of the service for a window without parts.
	defaultWindow        = 128_000
	defaultOutputReserve = 8_192
	minSafetyMargin      = 2_048
	safetyShare          = 0.05
	rotShare             = 0.25
)

// bound is the most tokens that a message can have: one for each byte of its encoding.
func bound(message *pb.Message) int64 {
	counted := &pb.Message{
		Role: message.GetRole(), CustomRole: message.GetCustomRole(), Name: message.GetName(), Parts: message.GetParts(),
	}
	return int64(proto.Size(counted)) + messageTokens + media(message.GetParts())
}

// room is the tokens that a request leaves for items, in the model's tokens. last: the last good reply.
func room(request *pb.AssembleRequest, last *pb.AssembleResponse) int64 {
	report, window := last.GetBudget(), request.GetBudget().GetWindow()
	var left int64
	if final, ok := request.GetBudget().GetKind().(*pb.Budget_MessageTokens); ok {
		left = final.MessageTokens - report.GetSystemPromptAddition()
	} else if last == nil || window != nil && window.Window != nil {
		left = available(request, window) - report.GetSystemPromptAddition()
	} else {
		left = report.GetMessages() + report.GetPrompt()
	}
	if len(request.GetPrompt()) > 0 {
		left -= int64(proto.Size(&pb.Message{Parts: request.Prompt})) + media(request.Prompt)
	}
	return left
}

// available is what a window leaves after its parts.
func available(request *pb.AssembleRequest, given *pb.WindowBudget) int64 {
	if given == nil {
		given = &pb.WindowBudget{}
	}
	window := or(given.Window, defaultWindow)
	system := given.GetSystemPromptTokens()
	if text, ok := given.SystemPrompt.(*pb.WindowBudget_SystemPromptText); ok {
		system = int64(len(text.SystemPromptText))
	}
	definitions := given.Tools
	if len(definitions) == 0 {
		definitions = request.GetTools()
	}
	var tools int64
	for _, tool := range definitions {
		tools += int64(proto.Size(tool))
	}
	margin := max(minSafetyMargin, int64(math.Ceil(float64(window)*safetyShare)))
	rot := int64(math.Ceil(float64(window) * rotShare))
	return window - system - or(given.ToolTokens, tools) - or(given.OutputReserve, defaultOutputReserve) -
		or(given.SafetyMargin, margin) - or(given.RotBuffer, rot)
}

func or(given *int64, otherwise int64) int64 {
	if given != nil {
		return *given
	}
	return otherwise
}

// media is what pictures and files may cost beyond the bytes that name them.
func media(parts []*pb.Part) int64 {
	var total int64
	for _, part := range parts {
		switch kind := part.GetKind().(type) {
		case *pb.Part_Image:
			total += imageTokens
		case *pb.Part_File:
			total += kind.File.GetSizeBytes()
		case *pb.Part_ToolResult:
			total += media(kind.ToolResult.GetParts())
		}
	}
	return total
}
