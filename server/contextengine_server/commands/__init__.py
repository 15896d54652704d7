"""What a caller can ask of the service, without gRPC."""
