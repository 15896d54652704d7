package contextengine

import (
	"crypto/sha256"
	"encoding/hex"

	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
)

// SessionHeader is the metadata that names a call's session, so that a proxy, or gRPC itself, can keep it at one of several
// servers. Servers do not read it: any server serves any call.
const SessionHeader = "contextengine-session"

// sessionOf names the session of a request for who is between: a hash, since ids may be anything and are nobody else's
// business. A child is made where its parent is. Of an import, the first request names it; of what is watched, agent and
// session do. Empty: the request names none.
func sessionOf(request any) string {
	switch first := request.(type) {
	case *pb.WatchRequest:
		if first.GetAgentId() == "" {
			return ""
		}
		return affinity(first.GetAgentId(), first.GetSessionId())
	case *pb.ImportRequest:
		request = first.GetHeader()
	}
	var ref *pb.SessionRef
	if named, ok := request.(interface{ GetSession() *pb.SessionRef }); ok {
		ref = named.GetSession()
	} else if named, ok := request.(interface{ GetParent() *pb.SessionRef }); ok {
		ref = named.GetParent()
	} else if named, ok := request.(interface{ GetChild() *pb.SessionRef }); ok {
		ref = named.GetChild()
	}
	session := ref.GetSessionId()
	if session == "" {
		session = ref.GetSessionKey()
	}
	return affinity(ref.GetAgentId(), session)
}

func affinity(agent, session string) string {
	if session == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(agent + "\x00" + session))
	return hex.EncodeToString(sum[:16])
}
