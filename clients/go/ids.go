package contextengine

import (
	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// NewID is a UUIDv7 (RFC 9562): 36 characters, rising with time.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// WithIDs are copies of messages, those without an id with a new one. Calls set missing ids by themselves, but on copies:
// whoever keeps messages to send them again gives them their ids here.
func WithIDs(messages ...*pb.Message) []*pb.Message {
	copies := make([]*pb.Message, len(messages))
	for i, message := range messages {
		copies[i] = message
		if message.GetId() == "" {
			copies[i] = proto.Clone(message).(*pb.Message)
			copies[i].Id = NewID()
		}
	}
	return copies
}

// withIDs is the request with its ids set, a copy where any is missing.
func withIDs(request any) any {
	switch request := request.(type) {
	case *pb.IngestRequest:
		if request.Message != nil && request.Message.Id == "" {
			copied := shallow(request)
			copied.Message = WithIDs(request.Message)[0]
			return copied
		}
	case *pb.IngestBatchRequest:
		copied := shallow(request)
		copied.Messages = WithIDs(request.Messages...)
		return copied
	case *pb.AssembleRequest:
		copied := shallow(request)
		copied.Ingest = WithIDs(request.Ingest...)
		if request.GetLive().GetStoreNew() {
			setID(&copied.RequestId)
		}
		return copied
	case *pb.BootstrapRequest:
		copied := shallow(request)
		setID(&copied.RequestId)
		return copied
	case *pb.AfterTurnRequest:
		copied := shallow(request)
		old := min(int(max(request.GetPrePromptMessageCount(), 0)), len(request.Messages))
		copied.Messages = append(request.Messages[:old:old], WithIDs(request.Messages[old:]...)...)
		setID(&copied.RequestId)
		return copied
	case *pb.RecordHostChangeRequest:
		copied := shallow(request)
		setID(&copied.ChangeId)
		return copied
	case proto.Message:
		return withRequestID(request)
	}
	return request
}

// withRequestID sets a request's `request_id` where it has one and it is empty.
func withRequestID(request proto.Message) proto.Message {
	field := request.ProtoReflect().Descriptor().Fields().ByName("request_id")
	if field == nil || request.ProtoReflect().Get(field).String() != "" {
		return request
	}
	copied := shallow(request)
	copied.ProtoReflect().Set(field, protoreflect.ValueOfString(NewID()))
	return copied
}

func setID(field *string) {
	if *field == "" {
		*field = NewID()
	}
}

// shallow copies a message's own fields and shares what they hold.
func shallow[M proto.Message](message M) M {
	copied := message.ProtoReflect().New()
	message.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		copied.Set(field, value)
		return true
	})
	return copied.Interface().(M)
}
