from contextengine_proto.v1 import assemble_pb2 as _assemble_pb2
from contextengine_proto.v1 import compaction_pb2 as _compaction_pb2
from contextengine_proto.v1 import lifecycle_pb2 as _lifecycle_pb2
from contextengine_proto.v1 import subagent_pb2 as _subagent_pb2
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor
