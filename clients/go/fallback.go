package contextengine

import (
	"math"
	"strings"

	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
	"google.golang.org/protobuf/proto"
)

// FallbackReason is the outcome_reason of what a client assembles by itself.
const FallbackReason = "CLIENT_FALLBACK"

// MakeUp is the context for a request without the service: the items of the last good assembly, what was handed over later and
// what the request brings, whole atoms within the budget. The outcome is DEGRADED, or OVER_BUDGET where what may not go
// exceeds the budget. last, the last good reply, may be nil.
func MakeUp(
	request *pb.AssembleRequest, held []*pb.Item, last *pb.AssembleResponse, later []*pb.Message,
) *pb.AssembleResponse {
	limit := room(request, last)
	kept := fitted(atomsOf(entriesOf(request, held, last, later)), limit)
	response := &pb.AssembleResponse{
		Outcome:              pb.AssembleResponse_OUTCOME_DEGRADED,
		OutcomeReason:        FallbackReason,
		SystemPromptAddition: last.GetSystemPromptAddition(),
		Revision:             last.GetRevision(),
		EngineId:             last.GetEngineId(),
	}
	if last != nil {
		response.ContextProjection = orNew(last.ContextProjection)
	}
	for _, atom := range kept {
		response.EstimatedTokens += atom.cost()
		for _, entry := range atom.entries {
			response.Items = append(response.Items, entry.item)
		}
	}
	response.Cache = &pb.CacheReport{TotalCount: int32(len(response.Items))}
	if response.EstimatedTokens > limit {
		response.Outcome = pb.AssembleResponse_OUTCOME_OVER_BUDGET
	}
	return response
}

// entriesOf is the list before anything is left out, each item with its cost.
func entriesOf(
	request *pb.AssembleRequest, held []*pb.Item, last *pb.AssembleResponse, later []*pb.Message,
) []entry {
	added := append(later[:len(later):len(later)], request.GetIngest()...)
	if request.GetLive() != nil {
		held, added = nil, request.Live.Messages
	}
	factor := last.GetBudget().GetModelFactor()
	if factor == 0 {
		factor = 1
	}
	var entries []entry
	seen := map[string]bool{"": false}
	for _, item := range held {
		entries = append(entries, entry{item, int64(math.Ceil(float64(item.Tokens) * factor))})
		seen[item.GetMessage().GetId()] = true
	}
	for _, message := range added {
		if id := message.GetId(); id != "" {
			if seen[id] {
				continue
			}
			seen[id] = true
		}
		cost := bound(message)
		entries = append(entries, entry{&pb.Item{Id: message.GetId(), Tokens: cost, Message: message}, cost})
	}
	return entries
}

// fitted are the atoms that stay: the oldest go first, messages before summaries, those that may not go never.
func fitted(atoms []*atom, limit int64) []*atom {
	var total int64
	for _, atom := range atoms {
		total += atom.cost()
	}
	fixed := fixedOf(atoms)
	gone := map[int]bool{}
	for _, ours := range []bool{false, true} {
		for i, atom := range atoms {
			if total > limit && !fixed[i] && isOurs(atom.first()) == ours {
				gone[i] = true
				total -= atom.cost()
			}
		}
	}
	var kept []*atom
	for i, atom := range atoms {
		if !gone[i] {
			kept = append(kept, atom)
		}
	}
	return kept
}

// fixedOf are the indexes of atoms that may not go.
func fixedOf(atoms []*atom) map[int]bool {
	fixed := map[int]bool{len(atoms) - 1: true}
	for i, atom := range atoms {
		if role := atom.first().GetRole(); role != pb.Role_ROLE_SYSTEM && role != pb.Role_ROLE_DEVELOPER {
			break
		}
		fixed[i] = true
	}
	asked := -1
	for i, atom := range atoms {
		for _, entry := range atom.entries {
			message := entry.item.GetMessage()
			if pinned, labelled := message.GetLabels()["pinned"]; labelled && pinned != "false" {
				fixed[i] = true
			}
			if message.GetRole() == pb.Role_ROLE_USER && !isOurs(message) {
				asked = i
			}
		}
	}
	fixed[asked] = true
	return fixed
}

func isOurs(message *pb.Message) bool { return strings.HasPrefix(message.GetId(), "ce:") }

// entry is an item and its cost in the model's tokens.
type entry struct {
	item *pb.Item
	cost int64
}

// atom is entries that stand or fall together, and the calls in it that wait for their results.
type atom struct {
	entries []entry
	open    []*pb.ToolCallPart
}

func (a *atom) cost() int64 {
	var total int64
	for _, entry := range a.entries {
		total += entry.cost
	}
	return total
}

func (a *atom) first() *pb.Message { return a.entries[0].item.GetMessage() }

// atomsOf are the atoms of a list. Results without a call are left out, calls that were left get a made-up result; those of
// the last atom stay open: they are pending.
func atomsOf(entries []entry) []*atom {
	var atoms []*atom
	current := &atom{}
	for _, next := range entries {
		answered := 0
		if answers(next.item.GetMessage()) {
			next.item, answered = answering(next.item, current)
			if len(next.item.GetMessage().GetParts()) == 0 {
				continue
			}
		}
		message := next.item.GetMessage()
		calls := callsOf(message)
		if answered > 0 || message.GetRole() == pb.Role_ROLE_ASSISTANT && onlyReasoning(current) {
			current.entries = append(current.entries, next)
			current.open = append(current.open, calls...)
			continue
		}
		current.close()
		current = &atom{entries: []entry{next}, open: calls}
		atoms = append(atoms, current)
	}
	return atoms
}

func answers(message *pb.Message) bool {
	if message.GetRole() == pb.Role_ROLE_TOOL {
		return true
	}
	for _, part := range message.GetParts() {
		if part.GetToolResult() != nil {
			return true
		}
	}
	return false
}

// answering is the item without results that answer no open call of the atom; the others close theirs. And how many did.
func answering(item *pb.Item, within *atom) (*pb.Item, int) {
	var kept []*pb.Part
	answered := 0
	for _, part := range item.GetMessage().GetParts() {
		result := part.GetToolResult()
		if result == nil {
			kept = append(kept, part)
			continue
		}
		for i, call := range within.open {
			if call.GetCallId() == result.GetCallId() {
				within.open = append(within.open[:i:i], within.open[i+1:]...)
				kept = append(kept, part)
				answered++
				break
			}
		}
	}
	if len(kept) == len(item.GetMessage().GetParts()) {
		return item, answered
	}
	copied := proto.Clone(item).(*pb.Item)
	copied.Message.Parts, copied.Message.Native = kept, nil
	return copied, answered
}

func onlyReasoning(atom *atom) bool {
	if len(atom.entries) == 0 {
		return false
	}
	last := atom.entries[len(atom.entries)-1].item.GetMessage()
	for _, part := range last.GetParts() {
		if part.GetReasoning() == nil {
			return false
		}
	}
	return last.GetRole() == pb.Role_ROLE_ASSISTANT && len(last.GetParts()) > 0
}

func callsOf(message *pb.Message) []*pb.ToolCallPart {
	var calls []*pb.ToolCallPart
	if message.GetRole() == pb.Role_ROLE_ASSISTANT {
		for _, part := range message.GetParts() {
			if call := part.GetToolCall(); call != nil {
				calls = append(calls, call)
			}
		}
	}
	return calls
}

// close gives the calls that are open a result that says there is none.
func (a *atom) close() {
	caller := ""
	for _, entry := range a.entries {
		if len(callsOf(entry.item.GetMessage())) > 0 {
			caller = entry.item.GetMessage().GetId()
		}
	}
	for _, call := range a.open {
		message := ToolResult(call.GetCallId(), "No result was recorded.")
		message.Id = "ce:no-result:" + caller + ":" + call.GetCallId()
		result := message.Parts[0].GetToolResult()
		result.Name, result.IsError = call.GetName(), true
		cost := bound(message)
		a.entries = append(a.entries, entry{&pb.Item{
			Id: message.Id, Message: message, Tokens: cost,
			Origin: &pb.Origin{Kind: &pb.Origin_Synthetic{Synthetic: "no result was recorded"}},
		}, cost})
	}
	a.open = nil
}
