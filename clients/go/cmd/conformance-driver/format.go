package main

import (
	"encoding/json"

	contextengine "github.com/contextengine/contextengine/clients/go"
	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
)

// format reads a request of a provider, or writes one.
func format(a asked) (answer, error) {
	if a.Out == nil {
		var request struct {
			System   json.RawMessage
			Messages []json.RawMessage
			Input    []json.RawMessage
		}
		if err := json.Unmarshal([]byte(a.In), &request); err != nil {
			return nil, err
		}
		var messages []*pb.Message
		var err error
		switch a.Format {
		case contextengine.OpenAIChat:
			messages, err = contextengine.FromOpenAI(request.Messages)
		case contextengine.OpenAIResponses:
			messages, err = contextengine.FromResponses(request.Input)
		default:
			messages, err = contextengine.FromAnthropic(request.Messages, request.System)
		}
		return answer{"messages": encoded(messages)}, err
	}
	messages := decoded[pb.Message](a.Out)
	var made any = contextengine.ToAnthropic(messages)
	switch a.Format {
	case contextengine.OpenAIChat:
		made = answer{"messages": contextengine.ToOpenAI(messages)}
	case contextengine.OpenAIResponses:
		made = answer{"input": contextengine.ToResponses(messages)}
	}
	text, err := json.Marshal(made)
	return answer{"json": string(text)}, err
}
