"""Every message, enum and enum value of the package `contextengine.v1`, under one name each.

The protos document them; `contextengine_proto.v1` has the same names, a module for each proto file.
"""

# The generated modules define nothing else in public, so a star says exactly what is meant.
# ruff: noqa: F403
from contextengine_proto.v1.assemble_pb2 import *
from contextengine_proto.v1.budget_pb2 import *
from contextengine_proto.v1.compaction_pb2 import *
from contextengine_proto.v1.engine_info_pb2 import *
from contextengine_proto.v1.engines_pb2 import *
from contextengine_proto.v1.errors_pb2 import *
from contextengine_proto.v1.host_pb2 import *
from contextengine_proto.v1.lifecycle_pb2 import *
from contextengine_proto.v1.message_pb2 import *
from contextengine_proto.v1.projection_pb2 import *
from contextengine_proto.v1.quota_pb2 import *
from contextengine_proto.v1.recall_pb2 import *
from contextengine_proto.v1.runtime_pb2 import *
from contextengine_proto.v1.sessions_pb2 import *
from contextengine_proto.v1.subagent_pb2 import *
