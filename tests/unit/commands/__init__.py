"""Every command without gRPC, over the store in memory."""
