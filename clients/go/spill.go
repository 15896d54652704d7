package contextengine

import (
	"encoding/binary"
	"fmt"
	"os"

	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
	"google.golang.org/protobuf/proto"
)

// spill is the file that outlives a client: requests that could not be sent, each behind its length as a varint.
type spill struct{ file *os.File }

// openSpill opens a spill file and reads what it holds. A last record that was cut off is taken away.
func openSpill(path string) (*spill, []*pb.AfterTurnRequest, error) {
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, nil, err
	}
	var entries []*pb.AfterTurnRequest
	position := 0
	for {
		length, prefix := binary.Uvarint(data[position:])
		if prefix <= 0 || length > uint64(len(data)-position-prefix) {
			break
		}
		end := position + prefix + int(length)
		entry := &pb.AfterTurnRequest{}
		if err := proto.Unmarshal(data[position+prefix:end], entry); err != nil {
			return nil, nil, fmt.Errorf("contextengine: spill file %s: no request at byte %d: "+
				"move it away to go on without what it holds", path, position)
		}
		entries = append(entries, entry)
		position = end
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	if err := file.Truncate(int64(position)); err != nil {
		file.Close()
		return nil, nil, err
	}
	return &spill{file}, entries, nil
}

// append adds a request. It is on the disk when this returns.
func (s *spill) append(entry *pb.AfterTurnRequest) error {
	encoded, err := proto.Marshal(entry)
	if err != nil {
		return err
	}
	record := append(binary.AppendUvarint(nil, uint64(len(encoded))), encoded...)
	written, err := s.file.Write(record)
	if err == nil {
		err = s.file.Sync()
	}
	if err != nil {
		// Behind half a record nothing could be read again.
		if info, failed := s.file.Stat(); failed == nil {
			_ = s.file.Truncate(info.Size() - int64(written))
		}
	}
	return err
}

// clear leaves the file empty. Where that fails its records are sent again, which does no harm.
func (s *spill) clear() { _ = s.file.Truncate(0) }
